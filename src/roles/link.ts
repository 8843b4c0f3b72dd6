// `curtail link`: operations on one link, through the admin API.
import { parseArgs } from 'node:util'
import * as z from 'zod'
import { type AdminTarget, callAdminApi } from '../clients/admin-client.ts'
import { linkShape } from '../clients/link-shape.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { CODE_LENGTH_MAX, isCode } from '../links/alias.ts'
import { defineRole, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'

const requests = {
  show: { method: 'GET', suffix: '' },
  disable: { method: 'POST', suffix: '/disable' },
  enable: { method: 'POST', suffix: '/enable' },
  delete: { method: 'DELETE', suffix: '' },
} as const

type Verb = keyof typeof requests

/** `link show|disable|enable|delete CODE`. */
export const role = defineRole({
  usage: 'link show|disable|enable|delete CODE [--json]',
  about:
    'Shows, disables, enables or deletes one link. At most 5 seconds after it is disabled or\n' +
    'deleted, all pods have stopped redirecting it, unless the store is unavailable. enable\n' +
    'reverts disable. A deleted link cannot be restored, and its code is never reused.\n' +
    'A CODE that starts with - requires -- before it, as in: curtail link show -- -ab',
  settings: clientSettings,
  run: async ({ config, args }) => {
    const { verb, code, json } = parseLinkArgs(args)
    const target = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN }
    process.stdout.write(await runVerb(target, { verb, code, json }))
    return { exitCode: 0 }
  },
})

function parseLinkArgs(args: readonly string[]): { verb: Verb; code: string; json: boolean } {
  const verbs = Object.keys(requests).join(', ')
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { json: { type: 'boolean', default: false } },
    allowPositionals: true,
    strict: false,
  })
  const unknown = Object.keys(values).find((name) => name !== 'json')
  if (unknown !== undefined) {
    const option = `${unknown.length === 1 ? '-' : '--'}${unknown}`
    const hint = 'a CODE that starts with - requires -- before it'
    throw new UsageError(`link takes only --json, not ${option}; ${hint}`)
  }
  const [verb = '', code = '', ...rest] = positionals
  if (!isVerb(verb))
    throw new UsageError(`link requires one of ${verbs}: it is ${JSON.stringify(verb)}`)
  if (code === '' || rest.length > 0) {
    throw new UsageError(`link ${verb} requires one CODE: ${positionals.length - 1} are given`)
  }
  if (!isCode(code)) {
    const allowed = `1 to ${CODE_LENGTH_MAX} letters, digits, - and _`
    throw new UsageError(`CODE must consist of ${allowed}: it is ${JSON.stringify(code)}`)
  }
  return { verb, code, json: values.json === true }
}

function isVerb(name: string): name is Verb {
  return Object.hasOwn(requests, name)
}

async function runVerb(
  target: AdminTarget,
  { verb, code, json }: { verb: Verb; code: string; json: boolean },
): Promise<string> {
  const { method, suffix } = requests[verb]
  const request = { method, path: `/admin/links/${code}${suffix}` }
  if (verb === 'delete') {
    await callAdminApi(target, request, z.undefined())
    return json
      ? `${JSON.stringify({ short_code: code, state: 'deleted' })}\n`
      : `${code} deleted\n`
  }
  const link = await callAdminApi(target, request, linkShape)
  if (json) return `${JSON.stringify(link)}\n`
  return renderTable(
    ['CODE', 'STATE', 'CREATED', 'EXPIRES', 'TARGET'],
    [
      [
        link.short_code,
        link.state,
        link.created_at,
        link.expires_at ?? 'never',
        link.long_url ?? '-',
      ],
    ],
  )
}
