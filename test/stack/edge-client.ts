// Clients of the edge in the stack's tests: each has its own address, in the X-Forwarded-For of a
// trusted proxy, so that no two tests share a limit.
import { openHttpClient } from '../kit/http/http-client.ts'
import { createLinkRequest } from '../kit/http/client.ts'
import { createOpenApiCheck } from '../kit/http/openapi-check.ts'
import { type RawResponse, RESPONSE_MS_MAX, type RawRequest, jsonOf } from '../kit/http/raw-http.ts'

/** A client. */
export interface EdgeClient {
  readonly address: string
  /** Sends a request from its address; checks the response against the OpenAPI document. */
  ask(ask: RawRequest): Promise<RawResponse>
  /** POST /v1/urls with this body as JSON; a string is sent unchanged. */
  create(body: unknown, headers?: RawRequest['headers']): Promise<RawResponse>
  /** GET /{code}. */
  follow(code: string): Promise<RawResponse>
  close(): void
}

let addressesMade = 0

/** An IPv4 address that no other client uses. */
export function newAddress(): string {
  const at = addressesMade++
  return `10.${String(1 + (at >> 16))}.${String((at >> 8) & 255)}.${String(at & 255)}`
}

/** The request as sent by a client at `address`. */
export function requestFrom(address: string, ask: RawRequest): RawRequest {
  return { ...ask, headers: { 'X-Forwarded-For': address, ...ask.headers } }
}

/** Connects a client. */
export async function openEdgeClient(port: number, address = newAddress()): Promise<EdgeClient> {
  const httpClient = openHttpClient(port, { msMax: RESPONSE_MS_MAX })
  const exchange = (ask: RawRequest) => httpClient.send(requestFrom(address, ask))
  const check = createOpenApiCheck(jsonOf(await exchange({ path: '/openapi.json' })))
  const ask = async (request: RawRequest) => {
    const answer = await exchange(request)
    check(request, answer)
    return answer
  }
  return {
    address,
    ask,
    create: (body, headers) => ask(createLinkRequest(body, headers)),
    follow: (code) => ask({ path: `/${code}` }),
    close() {
      httpClient.close()
    },
  }
}
