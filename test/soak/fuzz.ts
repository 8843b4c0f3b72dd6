// Generated requests on keep-alive connections: no 5xx, no hang, and every link of a 201 redirects
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
/** Of the cases, those whose very bytes are broken; each takes a connection of its own. */
const BROKEN = 0.03

/** How many cases ended how. */
export interface FuzzCounts {
  cases: number
  broken: number
  followed: number
  readonly byStatus: Map<number, number>
}

/** Runs so many cases on the service at `port`. Throws the first that went wrong. */
export async function fuzz(given: {
  port: number
  cases: number
  seed: number
}): Promise<FuzzCounts> {
  const first = await openConnection(given.port)
  const check = createOpenApiCheck(jsonOf(await first.exchange({ path: '/openapi.json' })))
  first.close()
  const counts: FuzzCounts = { cases: 0, broken: 0, followed: 0, byStatus: new Map() }
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
      const bytes = requestBytes(one.ask)
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

  async #try({ ask, isValid }: FuzzCase): Promise<void> {
    const answer = await this.#exchange(ask)
    this.#given.check(ask, answer)
    if (isValid && answer.status !== 201 && answer.status !== 409) {
      throw new Error(`a valid request was answered ${answer.status} ${answer.body.toString()}`)
    }
    if (answer.status !== 201 || ask.path === '/') return
    const { long_url: sent } = JSON.parse(decode(ask.body)) as { long_url: string }
    const code = String(jsonOf(answer)['short_url']).split('/').at(-1) ?? ''
    await this.#mustLeadTo(code, storedForm(sent))
    if (this.#codes.push(code) > CODES_KEPT) this.#codes.shift()
  }

  async #mustLeadTo(code: string, target: string): Promise<void> {
    const answer = await this.#exchange({ path: `/${code}` })
    const location = headerOf(answer, 'Location')
    this.#given.counts.followed++
    if (answer.status === 302 && location === target) return
    throw new Error(`/${code} is ${answer.status} ${String(location)} instead of ${target}`)
  }

  async #exchange(ask: FuzzCase['ask']): Promise<RawResponse> {
    if (this.#connection?.isClosed !== false) {
      this.#connection = await openConnection(this.#given.port)
    }
    const answer = await this.#connection.exchange(ask, RESPONSE_MS_MAX)
    if (headerOf(answer, 'Connection') === 'close') {
      this.#connection.close()
      this.#connection = undefined
    }
    this.#count(answer)
    return answer
  }

  /** Sends bytes and nothing after them: whatever is answered, the connection must end. */
  async #sendBroken(bytes: Buffer): Promise<void> {
    this.#given.counts.broken++
    const connection = await openConnection(this.#given.port)
    connection.send(bytes)
    connection.socket.end()
    await withinDeadline('the end of a connection', connection.closed, RESPONSE_MS_MAX)
    const text = connection.rest.toString('latin1')
    for (const [, status] of text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
      if (Number(status) >= 500) throw new Error(`broken bytes were answered ${text}`)
    }
    connection.close()
  }

  #count({ status, body }: RawResponse): void {
    const { byStatus } = this.#given.counts
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
    if (status >= 500) throw new Error(`answered ${status} ${body.toString()}`)
  }
}

function decode(body: string | Buffer | undefined): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(body ?? ''))
}

/** What the contract says is stored. */
function storedForm(sent: string): string {
  return /^[\x21-\x7e]+$/.test(sent) ? sent : new URL(sent).href
}

/** The counts as a line. */
export function renderCounts(counts: FuzzCounts): string {
  const statuses = [...counts.byStatus].sort(([a], [b]) => a - b)
  const told = statuses.map(([status, count]) => `${count} × ${status}`)
  return (
    `${counts.cases} cases (${counts.broken} of broken bytes): ${told.join(', ')}; ` +
    `${counts.followed} links followed`
  )
}

/** The full size. */
export async function storm(given: { seed: number; log: (line: string) => void }): Promise<void> {
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
