// `curtail limit`: what the limiters observe, through their debug ports.
import { parseArgs } from 'node:util'
import * as z from 'zod'
import { callAdminApi } from '../clients/admin-client.ts'
import type { Settings } from '../config/config.ts'
import { defineRole, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'

const LIMITERS_MAX = 64
const LOCAL_LIMITER = 'http://127.0.0.1:6070'
const SHOWN_MAX = 20

const topValueShape = z.object({
  rule: z.string(),
  values: z.array(z.string()),
  hits: z.number(),
  denied: z.number(),
})
const minutesShape = z.array(z.object({ top: z.array(topValueShape) }))
type TopValue = z.output<typeof topValueShape>

const settings = {
  LIMITER_URLS: {
    about: 'URLs of the debug ports of all limiters',
    allowed: `1 to ${LIMITERS_MAX} http:// or https:// URLs, separated by commas`,
    fallback: LOCAL_LIMITER,
    schema: z
      .string()
      .default(LOCAL_LIMITER)
      .transform((value) => value.split(',').map((item) => item.trim()))
      .pipe(z.array(z.url({ protocol: /^https?$/ })).max(LIMITERS_MAX)),
  },
} as const satisfies Settings

/** `limit top`. */
export const role = defineRole({
  usage: 'limit top [--rule PATH] [--by denied|hits] [--json]',
  about:
    'Shows which values of requests, such as client addresses, had the most denied hits (or the\n' +
    'most hits) at each rule in the last one to two minutes, in the sum of all limiters. Values\n' +
    'of rules with hashed are shown as hashes. The hits of rare values are estimates.',
  settings,
  run: async ({ config, args }) => {
    const { rule, by, json } = parseLimitArgs(args)
    const minutes = await Promise.all(
      config.LIMITER_URLS.map((url) => {
        const named = { name: 'the debug port', setting: 'LIMITER_URLS' }
        const target = { url, token: undefined, ...named }
        return callAdminApi(target, { method: 'GET', path: '/top' }, minutesShape)
      }),
    )
    const merged = mergeTop(minutes.flat().flatMap(({ top }) => top))
      .filter((one) => rule === undefined || one.rule === rule)
      .toSorted((a, b) => b[by] - a[by] || b.hits - a.hits)
    process.stdout.write(json ? `${JSON.stringify(merged)}\n` : renderTop(merged))
    return { exitCode: 0 }
  },
})

function parseLimitArgs(args: readonly string[]) {
  const { values, positionals } = readArgs(args)
  const { rule, by, json } = values
  if (positionals.join(' ') !== 'top') throw new UsageError('limit requires top, and no other word')
  if (by !== 'denied' && by !== 'hits') {
    throw new UsageError(`--by must be denied or hits: it is ${JSON.stringify(by)}`)
  }
  return { rule, by, json } as const
}

function readArgs(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        rule: { type: 'string' },
        by: { type: 'string', default: 'denied' },
        json: { type: 'boolean', default: false },
      },
      allowPositionals: true,
    })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`limit top takes --rule, --by and --json: ${reason}`)
  }
}

/** Adds up the counts of the same values of the same rule. */
function mergeTop(all: readonly TopValue[]): TopValue[] {
  const sums = new Map<string, TopValue>()
  for (const one of all) {
    const id = JSON.stringify([one.rule, one.values])
    const { hits = 0, denied = 0 } = sums.get(id) ?? {}
    sums.set(id, { ...one, hits: hits + one.hits, denied: denied + one.denied })
  }
  return [...sums.values()]
}

function renderTop(top: readonly TopValue[]): string {
  if (top.length === 0) return 'no hits in the last minutes\n'
  const rows = top
    .slice(0, SHOWN_MAX)
    .map(({ rule, values, hits, denied }) => [
      rule,
      values.length === 0 ? '-' : values.map((value) => JSON.stringify(value)).join(' '),
      hits.toFixed(0),
      denied.toFixed(0),
    ])
  return renderTable(['RULE', 'VALUES', 'HITS', 'DENIED'], rows)
}
