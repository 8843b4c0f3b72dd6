// `curtail link`: creates a link through the API; operations on one link, or on many links, through
// the admin API.
import * as z from 'zod'
import { type AdminTarget, callAdminApiOnce } from '../clients/admin-client.ts'
import { runBulk } from '../clients/change-selected.ts'
import { createLink, hasNoCreator } from '../clients/create-link.ts'
import { type BulkRequest, parseBulk } from '../clients/link-arguments.ts'
import { linkCommands } from '../clients/link-commands.ts'
import { linkShape, shownState } from '../clients/link-shape.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { checkOperator, operatorSetting } from '../http/admin/operator-setting.ts'
import { apiClientSettings } from '../http/create/client-settings.ts'
import { CODE_LENGTH_MAX, isCode } from '../links/alias.ts'
import { TTL_DAYS_MAX } from '../links/expiry.ts'
import { parseHost } from '../links/target-url.ts'
import type { ConfigOf } from '../config/config.ts'
import type { Parsed } from '../process/command-line.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import { defineRole, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'

const requests = {
  show: { method: 'GET', suffix: '' },
  disable: { method: 'POST', suffix: '/disable' },
  enable: { method: 'POST', suffix: '/enable' },
  delete: { method: 'DELETE', suffix: '' },
} as const

const settings = { ...apiClientSettings, ...clientSettings, OPERATOR: operatorSetting } as const
type Arguments = Parsed<typeof linkCommands>

/** `link create|list|show|disable|enable|delete`. */
export const role = defineRole({
  name: 'link',
  about:
    'create calls the API at API_URL. If the service requires API keys, set API_KEY. If the\n' +
    'admin API shows that the service has not accepted the key, create prints a warning.\n' +
    'The other commands call the admin API at ADMIN_URL. At most 5 seconds after a link is\n' +
    'disabled or deleted, all pods have stopped redirecting it, unless the store is\n' +
    'unavailable. A deleted link cannot be restored, and its code is never reused.\n' +
    'A CODE that starts with - requires -- before it, as in: curtail link show -- -ab\n\n' +
    'disable and enable take one CODE, or options that select many links: --from-file or, for\n' +
    'disable, --creator or --target-host. Changes of many links skip links that are expired or\n' +
    'deleted. A file has one code, or one line of the output of --json, per line. With --json,\n' +
    'each link that is found or changed is printed. If a command fails, its error names the\n' +
    'option that continues it.\n\n' +
    'list, show and `curtail report list` show an active link whose target is blocked with the\n' +
    'state blocked, if the service has blocked targets. With --json, its state is active, and\n' +
    'target_blocked is true.',
  commands: linkCommands,
  settings,
  check: parseLinkArgs,
  run: async ({ config, args, signal }) => {
    const { ADMIN_URL: url, ADMIN_TOKEN: token } = config
    const operator = operatorOf(args) ?? config.OPERATOR
    const target = { url, token, operator }
    if (args.command === 'create') {
      process.stdout.write(await runCreate(config, args, signal))
      return { exitCode: 0 }
    }
    const many = parseLinkArgs(args)
    if (many !== undefined) {
      await runBulk(many, { target, signal, syntax, codeLengthMax: CODE_LENGTH_MAX })
    } else if (args.command !== 'list') process.stdout.write(await runVerb(target, args))
    return { exitCode: 0 }
  },
})

const syntax = { isCode, parseHost }

const operatorOf = ({ flags }: Arguments) => ('operator' in flags ? flags.operator : undefined)

/** The request of a command for many links; `undefined` for one link. Throws UsageError. */
function parseLinkArgs(args: Arguments): BulkRequest | undefined {
  if (args.command === 'create') {
    const { 'ttl-days': days } = args.flags
    parseDays(days)
    return undefined
  }
  checkOperator(operatorOf(args))
  const isOne = args.command === 'show' || args.command === 'delete'
  const many = isOne ? undefined : parseBulk(args, syntax)
  for (const code of args.operands) checkCode(code)
  return many
}

async function runCreate(
  { API_URL: url, API_KEY: apiKey, ...config }: ConfigOf<typeof settings>,
  { operands, flags }: Extract<Arguments, { command: 'create' }>,
  signal: AbortSignal,
): Promise<string> {
  const [longUrl = ''] = operands
  const ttlDays = parseDays(flags['ttl-days'])
  const onRetry = ({ message }: Error) => {
    process.stderr.write(`curtail: ${message}; retrying\n`)
  }
  const link = await createLink(
    { url, apiKey, signal, onRetry },
    { longUrl, alias: flags.alias, ttlDays },
  )
  const admin = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN }
  if (apiKey !== undefined && (await hasNoCreator(admin, { ...link, longUrl }))) {
    process.stderr.write(
      'curtail: the link has no creator: the service has not accepted the API key, ' +
        'which is unknown, revoked or expired\n',
    )
  }
  if (flags.json) return renderJsonLines([link])
  if (link.expires_at !== null) process.stderr.write(`expires at ${link.expires_at}\n`)
  return `${link.short_url}\n`
}

/** Throws UsageError. */
function parseDays(days: string | undefined): number | undefined {
  if (days === undefined) return undefined
  const number = /^\d{1,9}$/.test(days) ? Number(days) : 0
  if (number >= 1 && number <= TTL_DAYS_MAX) return number
  const allowed = `an integer from 1 to ${TTL_DAYS_MAX}`
  throw new UsageError(`--ttl-days must be ${allowed}: it is ${JSON.stringify(days)}`)
}

/** Throws UsageError: names the first fault, a character or the length. */
function checkCode(code: string): void {
  if (isCode(code)) return
  const [character] = /[^0-9A-Za-z_-]/u.exec(code) ?? []
  const fault =
    character === undefined
      ? `${JSON.stringify(code)} has ${code.length}`
      : `${JSON.stringify(code)} contains ${JSON.stringify(character)}`
  const allowed =
    character === undefined ? `1 to ${CODE_LENGTH_MAX} characters` : 'only letters, digits, - and _'
  const hint = code.includes('://') ? '; give only what follows the last / of a short URL' : ''
  throw new UsageError(`CODE must have ${allowed}: ${fault}${hint}`)
}

async function runVerb(
  target: AdminTarget,
  { command: verb, operands, flags }: Extract<Arguments, { command: keyof typeof requests }>,
): Promise<string> {
  const [code = ''] = operands
  const { method, suffix } = requests[verb]
  const request = { method, path: `/admin/links/${code}${suffix}` }
  if (verb === 'delete') {
    await callAdminApiOnce(target, request, z.undefined())
    const deleted = { short_code: code, state: 'deleted' }
    return flags.json ? renderJsonLines([deleted]) : `${code} deleted\n`
  }
  const link = await callAdminApiOnce(target, request, linkShape)
  if (flags.json) return renderJsonLines([link])
  return renderTable(
    ['CODE', 'STATE', 'CREATED', 'EXPIRES', 'CREATOR', 'TARGET'],
    [
      [
        link.short_code,
        shownState(link),
        link.created_at,
        link.expires_at ?? 'never',
        link.creator_id ?? '-',
        link.long_url ?? '-',
      ],
    ],
  )
}
