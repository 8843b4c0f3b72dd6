// Generated requests on keep-alive connections: no 5xx, no hang, and every created link redirects
// byte for byte to the target that the contract defines.
import { createOpenApiCheck, type OpenApiCheck } from '../kit/http/openapi-check.ts'
import { brokenBytes, type FuzzCase, nextCase } from '../kit/http/fuzz-cases.ts'
import { createRandom, type Random } from '../kit/random.ts'
import {
  type RawResponse,
  headerOf,
  jsonOf,
  openConnection,
  type RawConnection,
  requestBytes,
} from '../kit/http/raw-http.ts'
import { startStandalone } from '../kit/processes/standalone.ts'
import { withinDeadline } from '../kit/wait-for.ts'

const WORKERS = 12
const FULL_CASES = 100_000
const RESPONSE_MS_MAX = 5000
const CODES_KEPT = 50
/** The share of cases whose bytes are not HTTP; each uses its own connection. */
const BROKEN = 0.03

/** The number of cases by result. */
export interface FuzzCounts {
  cases: number
  broken: number
  redirects: number
  readonly byStatus: Map<number, number>
}

/** Runs `cases` cases on the service at `port`. Throws on the first violation. */
export async function fuzz(given: {
  port: number
  cases: number
  seed: number
}): Promise<FuzzCounts> {
  const first = await openConnection(given.port)
  const check = createOpenApiCheck(jsonOf(await first.exchange({ path: '/openapi.json' })))
  first.close()
  const counts: FuzzCounts = { cases: 0, broken: 0, redirects: 0, byStatus: new Map() }
  const workers = Array.from({ length: WORKERS }, (_, i) => {
    const random = createRandom(given.seed + i)
    return new Worker({ random, check, counts, port: given.port }).run(given.cases / WORKERS)
  })
  await Promise.all(workers)
  return counts
}

class Worker {
  readonly #given: { random: Random; check: OpenApiCheck; counts: FuzzCounts; port: number }
  readonly #codes: string[] = []
  #connection: RawConnection | undefined

  constructor(given: { random: Random; check: OpenApiCheck; counts: FuzzCounts; port: number }) {
    this.#given = given
  }

  async run(cases: number): Promise<void> {
    const { random, counts } = this.#given
    for (let i = 0; i < cases; i++) {
      const one = nextCase(random, this.#codes)
      counts.cases++
      const bytes = requestBytes(one.request)
      try {
        if (random.chance(BROKEN)) await this.#sendBroken(brokenBytes(random, bytes))
        else await this.#try(one)
      } catch (error) {
        const shown = JSON.stringify(bytes.toString('latin1').slice(0, 4000))
        throw new Error(`${String(error)} at ${shown}`, { cause: error })
      }
    }
    this.#connection?.close()
  }

  async #try({ request, isValid }: FuzzCase): Promise<void> {
    const response = await this.#exchange(request)
    this.#given.check(request, response)
    if (isValid && response.status !== 201 && response.status !== 409) {
      throw new Error(`a valid request got ${response.status} ${response.body.toString()}`)
    }
    if (response.status !== 201 || request.path === '/') return
    const { long_url: sent } = JSON.parse(decode(request.body)) as { long_url: string }
    const code = String(jsonOf(response)['short_url']).split('/').at(-1) ?? ''
    await this.#expectRedirect(code, storedForm(sent))
    if (this.#codes.push(code) > CODES_KEPT) this.#codes.shift()
  }

  async #expectRedirect(code: string, target: string): Promise<void> {
    const response = await this.#exchange({ path: `/${code}` })
    const location = headerOf(response, 'Location')
    this.#given.counts.redirects++
    if (response.status === 302 && location === target) return
    throw new Error(`/${code} is ${response.status} ${String(location)} instead of ${target}`)
  }

  async #exchange(request: FuzzCase['request']): Promise<RawResponse> {
    if (this.#connection?.isClosed !== false) {
      this.#connection = await openConnection(this.#given.port)
    }
    const response = await this.#connection.exchange(request, RESPONSE_MS_MAX)
    if (headerOf(response, 'Connection') === 'close') {
      this.#connection.close()
      this.#connection = undefined
    }
    this.#count(response)
    return response
  }

  /** Sends bytes, then half-closes: the connection must close, with any response but a 5xx. */
  async #sendBroken(bytes: Buffer): Promise<void> {
    this.#given.counts.broken++
    const connection = await openConnection(this.#given.port)
    connection.send(bytes)
    connection.socket.end()
    await withinDeadline('a connection to close', connection.closed, RESPONSE_MS_MAX)
    const received = connection.rest.toString('latin1')
    for (const [, status] of received.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
      if (Number(status) >= 500) throw new Error(`broken bytes got ${received}`)
    }
    connection.close()
  }

  #count({ status, body }: RawResponse): void {
    const { byStatus } = this.#given.counts
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
    if (status >= 500) throw new Error(`got ${status} ${body.toString()}`)
  }
}

function decode(body: string | Buffer | undefined): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(body ?? ''))
}

/** The form of a target that the contract defines as stored. */
function storedForm(sent: string): string {
  return /^[\x21-\x7e]+$/.test(sent) ? sent : new URL(sent).href
}

/** The counts on one line. */
export function renderCounts(counts: FuzzCounts): string {
  const statuses = [...counts.byStatus].sort(([a], [b]) => a - b)
  const rendered = statuses.map(([status, count]) => `${count} × ${status}`)
  return (
    `${counts.cases} cases (${counts.broken} with broken bytes): ${rendered.join(', ')}; ` +
    `${counts.redirects} links redirected`
  )
}

/** Runs the test at full size. */
export async function run(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const service = await startStandalone({ env: { OWN_HOSTS: 'localhost' } })
  try {
    const counts = await fuzz({ port: service.port, cases: FULL_CASES, seed: given.seed })
    given.log(renderCounts(counts))
    const errors = service.log.filter(({ level }) => level === 'error')
    if (errors.length > 0) throw new Error(`the log has errors: ${JSON.stringify(errors[0])}`)
  } finally {
    await service.stop()
  }
}
