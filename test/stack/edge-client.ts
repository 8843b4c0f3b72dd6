// Clients of the edge in the stack's tests: each has an address of its own, which Envoy is told by
// one trusted proxy, so that no two tests share a limit.
import { openAsker } from '../component/asker.ts'
import { createAsk } from '../component/client.ts'
import { createOpenApiCheck } from '../component/openapi-check.ts'
import { type Answer, ANSWER_MS_MAX, type Ask, jsonOf } from '../component/raw-http.ts'

/** A client. */
export interface EdgeClient {
  readonly address: string
  /** Asks with its address; the answer is held against the service's own OpenAPI document. */
  ask(ask: Ask): Promise<Answer>
  /** POST /v1/urls with this body as JSON; text goes as it is. */
  create(body: unknown, headers?: Ask['headers']): Promise<Answer>
  /** GET /{code}. */
  follow(code: string): Promise<Answer>
  close(): void
}

let addressesMade = 0

/** An IPv4 address that no client has had. */
export function newAddress(): string {
  const at = addressesMade++
  return `10.${String(1 + (at >> 16))}.${String((at >> 8) & 255)}.${String(at & 255)}`
}

/** The request as a client at `address` makes it. */
export function askFrom(address: string, ask: Ask): Ask {
  return { ...ask, headers: { 'X-Forwarded-For': address, ...ask.headers } }
}

/** Opens one. */
export async function openEdgeClient(port: number, address = newAddress()): Promise<EdgeClient> {
  const asker = openAsker(port, { msMax: ANSWER_MS_MAX })
  const exchange = (ask: Ask) => asker.ask(askFrom(address, ask))
  const check = createOpenApiCheck(jsonOf(await exchange({ path: '/openapi.json' })))
  const ask = async (request: Ask) => {
    const answer = await exchange(request)
    check(request, answer)
    return answer
  }
  return {
    address,
    ask,
    create: (body, headers) => ask(createAsk(body, headers)),
    follow: (code) => ask({ path: `/${code}` }),
    close() {
      asker.close()
    },
  }
}
