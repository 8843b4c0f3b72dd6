// `curtail smoke`: uses a running service as a client does, and says what does not work; it is what
// `helm test` runs. Leaves one link behind, for a day.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { clientSettings } from '../http/admin/client-settings.ts'
import { askAdmin } from '../clients/admin-client.ts'
import type { ConfigOf, Setting } from '../config/config.ts'
import { pause } from '../resilience/deadline.ts'
import { defineRole, OperatorError, refuseArguments } from '../process/role.ts'
import { integerSetting } from '../config/settings.ts'
import { codePoolSetting } from '../create/settings.ts'

const urlSetting: Setting<string> = {
  about: 'the service that is used, at its edge',
  allowed: 'an http:// or https:// URL',
  fallback: 'required',
  schema: z.url({ protocol: /^https?$/ }),
}

const settings = {
  SMOKE_URL: urlSetting,
  SMOKE_CREATES_MAX: integerSetting('requests to create by which it tries to be refused', {
    min: 1,
    max: 10_000,
    fallback: 200,
  }),
  CODE_POOL: { ...codePoolSetting, about: 'pool that must not be below its low water' },
  ...clientSettings,
} as const

type Config = ConfigOf<typeof settings>

/** A step fails only after it has been tried again for so long. */
const STEP_MS_MAX = 10_000
const PAUSE_MS = 500
const ANSWER_MS_MAX = 5000

/** `smoke`. */
export const role = defineRole({
  usage: 'smoke',
  about:
    'Shortens a link, follows it, reads the rate-limit headers, creates until it is refused,\n' +
    'and asks how full the pool of codes is. Each step is tried for 10 s. Ends with 1 at the\n' +
    'first that fails, and says why.',
  settings,
  run: async ({ config, args, signal }) => {
    refuseArguments('smoke', args)
    const link = await step('shortens', signal, () => shorten(config))
    await step('follows', signal, () => follow(config, link))
    await step('is refused', signal, () => beRefused(config, signal))
    await step('has codes', signal, () => readPool(config))
    return { exitCode: 0 }
  },
})

/** What a step found wrong; tried again until its time is over. */
class Wrong extends Error {
  override readonly name = 'Wrong'
  /** When trying again makes sense, in milliseconds. */
  readonly afterMs: number

  constructor(message: string, afterMs = PAUSE_MS) {
    super(message)
    this.afterMs = afterMs
  }
}

interface Told<T> {
  readonly value: T
  readonly sentence: string
}

/** Tries until it works, and says what it found. Throws OperatorError. */
async function step<T>(
  name: string,
  signal: AbortSignal,
  attempt: () => Promise<Told<T>>,
): Promise<T> {
  const endMs = performance.now() + STEP_MS_MAX
  for (;;) {
    try {
      const { value, sentence } = await attempt()
      process.stdout.write(`ok ${name}: ${sentence}\n`)
      return value
    } catch (error) {
      const isExpected = error instanceof Wrong || error instanceof OperatorError
      if (!isExpected) throw error
      const afterMs = error instanceof Wrong ? error.afterMs : PAUSE_MS
      if (signal.aborted || performance.now() + afterMs > endMs) {
        throw new OperatorError(`FAILED ${name}: ${error.message}`)
      }
      await pause(afterMs, signal)
    }
  }
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** One request. Throws Wrong where there is no answer. */
async function ask(url: URL, init: RequestInit): Promise<Answer> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS_MAX)
    const answer = await fetch(url, { redirect: 'manual', signal, ...init })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    throw new Wrong(`${url.href} does not answer (${String(cause)})`)
  }
}

function create(config: Config, body: object, headers: Record<string, string> = {}) {
  return ask(new URL('/v1/urls', config.SMOKE_URL), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

const idempotencyKey = randomUUID()
const longUrl = `https://example.com/curtail-smoke/${idempotencyKey}`
const linkShape = z.strictObject({ short_url: z.url(), expires_at: z.string() })

async function shorten(config: Config): Promise<Told<string>> {
  const body = { long_url: longUrl, ttl_days: 1 }
  const answer = await create(config, body, { 'Idempotency-Key': idempotencyKey })
  if (answer.status === 429) {
    const seconds = Number(answer.headers.get('retry-after'))
    throw new Wrong('POST /v1/urls is answered 429', Math.max(seconds * 1000, PAUSE_MS))
  }
  if (answer.status !== 201) throw new Wrong(`POST /v1/urls is answered ${show(answer)}, not 201`)
  const link = linkShape.safeParse(parseJson(answer.text))
  if (!link.success) throw new Wrong(`POST /v1/urls is answered 201 with ${answer.text}`)
  const limits = limitsOf(answer)
  const { short_url: shortUrl } = link.data
  const left = `of ${limits.limit} creates ${limits.remaining} are left`
  const sentence = `${longUrl} is ${shortUrl}; ${left}`
  return { value: new URL(shortUrl).pathname, sentence }
}

async function follow(config: Config, path: string): Promise<Told<undefined>> {
  const answer = await ask(new URL(path, config.SMOKE_URL), {})
  const location = answer.headers.get('location')
  if (![301, 302].includes(answer.status) || location !== longUrl) {
    throw new Wrong(`GET ${path} is answered ${show(answer)}, not with the link's target`)
  }
  const { limit } = limitsOf(answer)
  const sentence = `${path} leads to ${longUrl} (${answer.status}), limit ${limit}`
  return { value: undefined, sentence }
}

interface Limits {
  readonly limit: number
  readonly remaining: number
}

/** The rate-limit headers, each of them once. Throws Wrong. */
function limitsOf({ status, headers }: Answer): Limits {
  const numberOf = (name: string) => {
    const text = headers.get(name)
    if (text === null) {
      throw new Wrong(`an answer ${status} lacks ${name}: does the rate limiter answer Envoy?`)
    }
    if (!/^\d+$/.test(text)) throw new Wrong(`an answer ${status} has ${name}: ${text}`)
    return Number(text)
  }
  const limit = numberOf('x-ratelimit-limit')
  const remaining = numberOf('x-ratelimit-remaining')
  numberOf('x-ratelimit-reset')
  if (remaining > limit) throw new Wrong(`of ${limit} requests ${remaining} are left`)
  return { limit, remaining }
}

const refusalShape = z.object({
  type: z.string().endsWith('/problems/rate-limited'),
  status: z.literal(429),
  rule: z.string(),
})

/** Creates, with bodies that store nothing, until it is refused as promised. */
async function beRefused(config: Config, signal: AbortSignal): Promise<Told<undefined>> {
  const most = config.SMOKE_CREATES_MAX
  for (let tried = 1; tried <= most && !signal.aborted; tried++) {
    const answer = await create(config, {})
    if (answer.status === 422) {
      const { limit } = limitsOf(answer)
      if (limit <= most) continue
      const why = `a client may create ${limit} at once, and SMOKE_CREATES_MAX is ${most}`
      return { value: undefined, sentence: `not tried: ${why}` }
    }
    if (answer.status !== 429) throw new Wrong(`a create is answered ${show(answer)}, not 422`)
    const { limit, remaining } = limitsOf(answer)
    const refusal = refusalShape.safeParse(parseJson(answer.text))
    const retryAfter = answer.headers.get('retry-after') ?? 'nothing'
    if (!refusal.success || remaining !== 0 || !/^[1-9]\d*$/.test(retryAfter)) {
      const found = `${answer.text}, ${remaining} left, Retry-After ${retryAfter}`
      throw new Wrong(`a refusal is not as promised: ${found}`)
    }
    const { rule } = refusal.data
    const sentence = `429 after ${tried} by ${rule}, limit ${limit}, Retry-After ${retryAfter}`
    return { value: undefined, sentence }
  }
  throw new Wrong(`${most} creates in a row were let pass`)
}

const poolsShape = z.array(
  z.object({ pool: z.string(), level: z.number(), low_water: z.number().nullable() }),
)

async function readPool(config: Config): Promise<Told<undefined>> {
  const target = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN }
  const pools = await askAdmin(target, { method: 'GET', path: '/admin/pools' }, poolsShape)
  const pool = pools.find((one) => one.pool === config.CODE_POOL)
  if (pool === undefined) throw new Wrong(`there is no pool ${config.CODE_POOL}`)
  const least = pool.low_water ?? 1
  if (pool.level < least) {
    throw new Wrong(`the pool ${pool.pool} holds ${pool.level} codes, fewer than ${least}`)
  }
  return { value: undefined, sentence: `the pool ${pool.pool} holds ${pool.level}` }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined // no document of ours: the caller shows the text
  }
}

function show({ status, text }: Answer): string {
  return `${status} ${text.slice(0, 300)}`
}
