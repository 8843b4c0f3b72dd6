// `curtail smoke`: tests a running service as a client, and reports the first step that fails.
// `helm test` runs it. It creates one link, which expires after a day.
import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { clientSettings } from '../http/admin/client-settings.ts'
import { callAdminApi } from '../clients/admin-client.ts'
import type { ConfigOf, Setting } from '../config/config.ts'
import { pause } from '../resilience/deadline.ts'
import { jsonFlag } from '../process/command-line.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import { defineRole, OperatorError } from '../process/role.ts'
import { integerSetting } from '../config/settings.ts'
import { codePoolSetting } from '../create/settings.ts'

const urlSetting: Setting<string> = {
  about: 'URL of the edge (Envoy) of the service to test',
  allowed: 'an http:// or https:// URL',
  fallback: 'required',
  schema: z.url({ protocol: /^https?$/ }),
}

const settings = {
  SMOKE_URL: urlSetting,
  SMOKE_CREATES_MAX: integerSetting('maximum number of creates to send until one is denied', {
    min: 1,
    max: 10_000,
    fallback: 200,
  }),
  SMOKE_API_KEY: {
    about: 'API key of the creates; required if the service requires API keys',
    allowed: 'an API key',
    fallback: 'unset',
    schema: z.string().optional(),
    secret: true,
  },
  CODE_POOL: { ...codePoolSetting, about: 'pool whose level must not be below its low-water mark' },
  ...clientSettings,
} as const

type Config = ConfigOf<typeof settings>

/** The maximum time for which a failed step is retried. */
const STEP_MS_MAX = 10_000
const PAUSE_MS = 500
const RESPONSE_MS_MAX = 5000

/** `smoke`. */
export const role = defineRole({
  name: 'smoke',
  about:
    'Tests a running service as a client: creates a link, requests it, reads the rate-limit\n' +
    'headers, sends creates until a limit denies one, and reads the level of the code pool.\n' +
    'Retries each step for 10 s. Exits with 1 if a step fails, and prints the reason.',
  commands: { '': { about: '', flags: jsonFlag } },
  settings,
  run: async ({ config, args, signal }) => {
    const run = { signal, isJson: args.flags.json }
    const { path } = await step('creates', run, () => createLink(config))
    await step('resolves', run, () => requestLink(config, path))
    await step('is limited', run, () => exceedLimit(config, signal))
    await step('has codes', run, () => readPool(config))
    return { exitCode: 0 }
  },
})

/** The failure of a step; the step is retried until its deadline. */
class StepError extends Error {
  override readonly name = 'StepError'
  /** The delay before the retry, in milliseconds. */
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs = PAUSE_MS) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

/** Retries a step until it succeeds, and prints its result. Throws OperatorError. */
async function step<T extends { readonly sentence: string }>(
  name: string,
  { signal, isJson }: { readonly signal: AbortSignal; readonly isJson: boolean },
  attempt: () => Promise<T>,
): Promise<T> {
  const deadlineMs = performance.now() + STEP_MS_MAX
  const print = (state: 'ok' | 'failed', detail: string) => {
    const object = { step: name, state, detail }
    process.stdout.write(isJson ? renderJsonLines([object]) : `${state} ${name}: ${detail}\n`)
  }
  for (;;) {
    try {
      const result = await attempt()
      print('ok', result.sentence)
      return result
    } catch (error) {
      const isExpected = error instanceof StepError || error instanceof OperatorError
      if (!isExpected) throw error
      const retryAfterMs = error instanceof StepError ? error.retryAfterMs : PAUSE_MS
      if (signal.aborted || performance.now() + retryAfterMs > deadlineMs) {
        if (isJson) print('failed', error.message)
        throw new OperatorError(`FAILED ${name}: ${error.message}`)
      }
      await pause(retryAfterMs, signal)
    }
  }
}

type HttpResponse = Awaited<ReturnType<typeof send>>

/** Sends one request. Throws StepError if there is no response. */
async function send(url: URL, init: RequestInit) {
  try {
    const signal = AbortSignal.timeout(RESPONSE_MS_MAX)
    const response = await fetch(url, { redirect: 'manual', signal, ...init })
    return { status: response.status, headers: response.headers, body: await response.text() }
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    throw new StepError(`no response from ${url.href} (${String(cause)})`)
  }
}

function postLink(config: Config, body: object, headers: Record<string, string> = {}) {
  return send(new URL('/v1/urls', config.SMOKE_URL), {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(config.SMOKE_API_KEY !== undefined && { 'X-API-Key': config.SMOKE_API_KEY }),
      ...headers,
    },
    body: JSON.stringify(body),
  })
}

const idempotencyKey = randomUUID()
const longUrl = `https://example.com/curtail-smoke/${idempotencyKey}`
const linkShape = z.strictObject({ short_url: z.url(), expires_at: z.string() })

async function createLink(config: Config) {
  const body = { long_url: longUrl, ttl_days: 1 }
  const response = await postLink(config, body, { 'Idempotency-Key': idempotencyKey })
  if (response.status === 429) {
    const seconds = Number(response.headers.get('retry-after'))
    throw new StepError('POST /v1/urls returned 429', Math.max(seconds * 1000, PAUSE_MS))
  }
  if (response.status === 401)
    throw new StepError('POST /v1/urls returned 401: SMOKE_API_KEY must be a valid API key')
  if (response.status !== 201)
    throw new StepError(`POST /v1/urls returned ${renderResponse(response)}, not 201`)
  const link = linkShape.safeParse(parseJson(response.body))
  if (!link.success) throw new StepError(`POST /v1/urls returned 201 with ${response.body}`)
  const limits = limitsOf(response)
  const { short_url: shortUrl } = link.data
  const left = `${limits.remaining} of ${limits.limit} creates left`
  return { path: new URL(shortUrl).pathname, sentence: `${longUrl} is ${shortUrl}; ${left}` }
}

async function requestLink(config: Config, path: string) {
  const response = await send(new URL(path, config.SMOKE_URL), {})
  const location = response.headers.get('location')
  if (![301, 302].includes(response.status) || location !== longUrl) {
    throw new StepError(`GET ${path} returned ${renderResponse(response)}, not the link's target`)
  }
  const { limit } = limitsOf(response)
  return { sentence: `${path} redirects to ${longUrl} (${response.status}), limit ${limit}` }
}

/** Reads the rate-limit headers. Throws StepError if one is missing or invalid. */
function limitsOf({ status, headers }: HttpResponse) {
  const numberOf = (name: string) => {
    const value = headers.get(name)
    if (value === null) {
      throw new StepError(`a response ${status} lacks ${name}: is the rate limiter available?`)
    }
    if (!/^\d+$/.test(value)) throw new StepError(`a response ${status} has ${name}: ${value}`)
    return Number(value)
  }
  const limit = numberOf('x-ratelimit-limit')
  const remaining = numberOf('x-ratelimit-remaining')
  numberOf('x-ratelimit-reset')
  if (remaining > limit) throw new StepError(`${remaining} of ${limit} requests left`)
  return { limit, remaining }
}

const rejectionShape = z.object({
  type: z.string().endsWith('/problems/rate-limited'),
  status: z.literal(429),
  rule: z.string(),
})

/** Sends creates with invalid bodies, which store nothing, until a rate limit denies one. */
async function exceedLimit(config: Config, signal: AbortSignal) {
  const maxCreates = config.SMOKE_CREATES_MAX
  let tried = 0
  while (tried < maxCreates && !signal.aborted) {
    tried++
    const response = await postLink(config, {})
    if (response.status === 422) {
      const { limit } = limitsOf(response)
      if (limit <= maxCreates) continue
      const reason = `the limit is ${limit} creates, and SMOKE_CREATES_MAX is ${maxCreates}`
      return { sentence: `skipped: ${reason}` }
    }
    if (response.status !== 429)
      throw new StepError(`a create returned ${renderResponse(response)}, not 422`)
    const { limit, remaining } = limitsOf(response)
    const rejection = rejectionShape.safeParse(parseJson(response.body))
    const retryAfter = response.headers.get('retry-after') ?? 'nothing'
    if (!rejection.success || remaining !== 0 || !/^[1-9]\d*$/.test(retryAfter)) {
      const found = `${response.body}, ${remaining} left, Retry-After ${retryAfter}`
      throw new StepError(`a 429 is not as specified: ${found}`)
    }
    const { rule } = rejection.data
    return {
      sentence: `429 after ${tried} by ${rule}, limit ${limit}, Retry-After ${retryAfter}`,
    }
  }
  throw new StepError(`no rate limit denied any of ${tried} creates`)
}

const poolsShape = z.array(
  z.object({ pool: z.string(), level: z.number(), low_water: z.number().nullable() }),
)

async function readPool(config: Config) {
  const target = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN }
  const pools = await callAdminApi(target, { method: 'GET', path: '/admin/pools' }, poolsShape)
  const pool = pools.find(({ pool: name }) => name === config.CODE_POOL)
  if (pool === undefined) throw new StepError(`unknown pool ${config.CODE_POOL}`)
  const minLevel = pool.low_water ?? 1
  if (pool.level < minLevel) {
    throw new StepError(`the pool ${pool.pool} holds ${pool.level} codes, fewer than ${minLevel}`)
  }
  return { sentence: `the pool ${pool.pool} holds ${pool.level}` }
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    return undefined // not JSON: the caller shows the body
  }
}

/** Status and start of the body, for messages. */
function renderResponse({ status, body }: HttpResponse): string {
  return `${status} ${body.slice(0, 300)}`
}
