// Clients of the edge in the stack's tests: each has an address of its own, which Envoy is told by
// one trusted proxy, so that no two tests share a limit.
import { createAsk } from '../component/client.ts'
import { createOpenApiCheck } from '../component/openapi-check.ts'
import {
  type Answer,
  type Ask,
  headerOf,
  jsonOf,
  openConnection,
  type RawConnection,
} from '../component/raw-http.ts'

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
  const idle: RawConnection[] = []
  const exchange = async (ask: Ask) => {
    let connection = idle.pop()
    while (connection?.isEnded === true) connection = idle.pop()
    connection ??= await openConnection(port)
    const answer = await connection.exchange(askFrom(address, ask))
    if (headerOf(answer, 'Connection') === 'close') connection.close()
    else idle.push(connection)
    return answer
  }
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
      for (const connection of idle.splice(0)) connection.close()
    },
  }
}
