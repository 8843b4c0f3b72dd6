// `curtail limit`: shows what the limiters observe, through their debug ports, and resets counters,
// through the admin API of one limiter.
import * as z from 'zod'
import {
  type AdminTarget,
  callAdminApi,
  ProblemError,
  UnavailableError,
} from '../clients/admin-client.ts'
import type { Settings } from '../config/config.ts'
import { DESCRIPTOR_SYNTAX, parseDescriptor } from '../limits/parse-descriptor.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { jsonFlag, type Parsed } from '../process/command-line.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'

const LIMITERS_MAX = 64
const LOCAL_LIMITER = 'http://127.0.0.1:6070'
const SHOWN_MAX = 20

const topValueShape = z.object({
  rule: z.string(),
  name: z.string().optional(),
  isShadow: z.boolean(),
  values: z.array(z.string()),
  hits: z.number(),
  denied: z.number(),
})
const resetShape = z.object({ rules: z.array(z.string()) })
const minutesShape = z.array(z.object({ top: z.array(topValueShape) }))
type TopValue = z.output<typeof topValueShape>

const settings = {
  ...clientSettings,
  LIMITER_URLS: {
    about: 'URLs of the debug ports of all limiters, which are processes of the role ratelimit',
    allowed: `1 to ${LIMITERS_MAX} http:// or https:// URLs, separated by commas`,
    fallback: LOCAL_LIMITER,
    schema: z
      .string()
      .default(LOCAL_LIMITER)
      .transform((value) => value.split(',').map((item) => item.trim()))
      .pipe(
        z
          .array(z.url({ protocol: /^https?$/ }))
          .min(1)
          .max(LIMITERS_MAX),
      ),
  },
} as const satisfies Settings

const descriptorCommand = { operands: ['DOMAIN', 'k=v,k=v'], flags: jsonFlag } as const
const commands = {
  top: {
    about: 'shows which values of requests had the most denied hits',
    flags: {
      rule: { about: 'only this rule', value: 'PATH' },
      by: {
        about: 'sorts by a count, by default denied',
        value: 'denied|hits',
        values: ['denied', 'hits'],
      },
      ...jsonFlag,
    },
  },
  explain: {
    about: 'shows which rules a descriptor matches, and the hits that are left',
    ...descriptorCommand,
  },
  reset: { about: 'resets the counters of a descriptor', ...descriptorCommand },
} as const
type TopFlags = Extract<Parsed<typeof commands>, { command: 'top' }>['flags']

/** `limit top|explain|reset`. */
export const role = defineRole({
  name: 'limit',
  about:
    'These commands call limiters, which are processes of the role ratelimit. standalone has no\n' +
    'limiter: it counts in its own process.\n' +
    'top shows which values of requests, such as client addresses, had the most denied hits (or\n' +
    'the most hits) at each rule in the last one to two minutes, in the sum of all limiters.\n' +
    'Values of rules that set hashed are shown as hashes. The hits of rare values are\n' +
    'estimates. Rules that are marked with shadow are in shadow mode: their denied hits are\n' +
    'admitted.\n' +
    'explain shows which rules a descriptor of a domain matches, and how many hits their\n' +
    'counters have left, as the first limiter counts them. It counts no hit itself.\n' +
    'reset resets these counters, through the admin API of one limiter, which logs it.',
  commands,
  settings,
  check: (args) => args.command === 'top' || parseDescriptorRequest(args),
  run: async ({ config, args }) => {
    const targets = config.LIMITER_URLS.map(targetOf)
    const admin = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN }
    const run = () => {
      if (args.command === 'top') return runTop(targets, args.flags)
      const request = parseDescriptorRequest(args)
      return args.command === 'explain' ? runExplain(targets, request) : runReset(admin, request)
    }
    process.stdout.write(await run())
    return { exitCode: 0 }
  },
})

function targetOf(url: string): AdminTarget {
  return { url, token: undefined, name: 'the debug port', setting: 'LIMITER_URLS' }
}

interface DescriptorRequest {
  readonly domain: string
  readonly descriptor: string
  readonly json: boolean
}

function parseDescriptorRequest({
  command,
  operands,
  flags,
}: Extract<Parsed<typeof commands>, { command: 'explain' | 'reset' }>): DescriptorRequest {
  const [domain = '', descriptor = ''] = operands
  if (domain !== '' && parseDescriptor(descriptor) !== undefined)
    return { domain, descriptor, json: flags.json }
  const given = operands.map((operand) => JSON.stringify(operand)).join(' ')
  throw new UsageError(
    `limit ${command} takes a DOMAIN and a descriptor: ${DESCRIPTOR_SYNTAX}: they are ${given}`,
  )
}

async function runTop(
  targets: readonly AdminTarget[],
  { rule, by = 'denied', json }: TopFlags,
): Promise<string> {
  const request = { method: 'GET', path: '/top' }
  const read = (target: AdminTarget) => callLimiter(target, request, minutesShape)
  const minutes = (await Promise.all(targets.map(read))).flat()
  const merged = mergeTop(minutes.flatMap(({ top }) => top))
    .filter((one) => rule === undefined || one.rule === rule)
    .toSorted((a, b) => (by === 'hits' ? 0 : b.denied - a.denied) || b.hits - a.hits)
  return json ? `${JSON.stringify(merged)}\n` : renderTop(merged, rule)
}

async function runExplain(
  [target]: readonly AdminTarget[],
  { domain, descriptor, json }: DescriptorRequest,
): Promise<string> {
  if (target === undefined) throw new UsageError('LIMITER_URLS must contain a URL')
  const path = `/explain?${String(new URLSearchParams({ domain, descriptor }))}`
  const explanation = await callLimiter(target, { method: 'GET', path }, z.string())
  const lines = explanation.trimEnd().split('\n')
  return json ? renderJsonLines([{ domain, descriptor, explanation: lines }]) : explanation
}

async function runReset(
  target: AdminTarget,
  { domain, descriptor, json }: DescriptorRequest,
): Promise<string> {
  const path = `/admin/limits/reset?${String(new URLSearchParams({ domain, descriptor }))}`
  const { rules } = await callLimiter(target, { method: 'POST', path }, resetShape)
  if (json) return renderJsonLines(rules.map((rule) => ({ rule, state: 'reset' })))
  if (rules.length === 0) return 'no counter: no limit applies to the descriptor\n'
  return rules.map((rule) => `counter of ${rule} reset\n`).join('')
}

/** Calls a limiter. If the URL may belong to another process, the error explains what to set. */
async function callLimiter<T>(...call: Parameters<typeof callAdminApi<T>>): Promise<T> {
  try {
    return await callAdminApi(...call)
  } catch (error) {
    const isUnreachable = error instanceof UnavailableError && error.status === undefined
    const isUnknownPath = error instanceof ProblemError && error.status === 404
    if (!isUnreachable && !isUnknownPath) throw error
    const [{ setting }] = call
    const required =
      setting === undefined
        ? 'ADMIN_URL must be the admin URL of a limiter (role ratelimit) with an ADMIN_TOKEN'
        : `${setting} must be the URLs of the debug ports of limiters (role ratelimit)`
    throw new OperatorError(`${error.message}; ${required}: standalone has no limiter`)
  }
}

/** Adds up the counts of the same values of the same rule. */
function mergeTop(all: readonly TopValue[]): TopValue[] {
  const sums = new Map<string, TopValue>()
  for (const one of all) {
    const id = JSON.stringify([one.rule, one.name, one.values])
    const { hits = 0, denied = 0 } = sums.get(id) ?? {}
    sums.set(id, { ...one, hits: hits + one.hits, denied: denied + one.denied })
  }
  return [...sums.values()]
}

function renderTop(top: readonly TopValue[], onlyRule: string | undefined): string {
  if (top.length === 0) {
    const which = onlyRule === undefined ? '' : ` of the rule ${onlyRule}`
    const hint = 'limiters with LIMIT_TOP_VALUES=false record none'
    return `no hits${which} recorded in the last minutes; ${hint}\n`
  }
  const rows = top
    .slice(0, SHOWN_MAX)
    .map(({ rule, name, isShadow, values, hits, denied }) => [
      [rule, ...(name === undefined ? [] : [`(${name})`]), ...(isShadow ? ['shadow'] : [])].join(
        ' ',
      ),
      values.length === 0 ? '-' : values.map(renderValue).join(' '),
      hits.toFixed(0),
      denied.toFixed(0),
    ])
  return renderTable(['RULE', 'VALUES', 'HITS', 'DENIED'], rows)
}

/** A value in quotes; escapes characters that control the terminal or the direction of text. */
function renderValue(value: string): string {
  return JSON.stringify(value).replace(/[\u007f-\u009f\p{Bidi_Control}]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0')
    return `\\u${code}`
  })
}
