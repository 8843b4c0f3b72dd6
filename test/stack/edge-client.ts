// Clients of the edge in the stack's tests. Each sends its own address in X-Forwarded-For, like a
// trusted proxy, so that no two tests share a limit.
import { openHttpClient } from '../kit/http/http-client.ts'
import { createLinkRequest } from '../kit/http/client.ts'
import { createOpenApiCheck } from '../kit/http/openapi-check.ts'
import { type RawResponse, RESPONSE_MS_MAX, type RawRequest, jsonOf } from '../kit/http/raw-http.ts'

/** A client with one address. */
export interface EdgeClient {
  readonly address: string
  /** Sends a request from its address; checks the response against the OpenAPI document. */
  send(request: RawRequest): Promise<RawResponse>
  /** POST /v1/urls with this body as JSON; a string is sent unchanged. */
  create(body: unknown, headers?: RawRequest['headers']): Promise<RawResponse>
  close(): void
}

let addressCount = 0

/** An IPv4 address that no other client uses. */
export function newAddress(): string {
  const at = addressCount++
  return `10.${String(1 + (at >> 16))}.${String((at >> 8) & 255)}.${String(at & 255)}`
}

/** The request as sent by a client at `address`. */
export function requestFrom(address: string, request: RawRequest): RawRequest {
  return { ...request, headers: { 'X-Forwarded-For': address, ...request.headers } }
}

/** Opens a client, by default with a new address. */
export async function openEdgeClient(port: number, address = newAddress()): Promise<EdgeClient> {
  const httpClient = openHttpClient(port, { msMax: RESPONSE_MS_MAX })
  const exchange = (request: RawRequest) => httpClient.send(requestFrom(address, request))
  const check = createOpenApiCheck(jsonOf(await exchange({ path: '/openapi.json' })))
  const send = async (request: RawRequest) => {
    const response = await exchange(request)
    check(request, response)
    return response
  }
  return {
    address,
    send,
    create: (body, headers) => send(createLinkRequest(body, headers)),
    close() {
      httpClient.close()
    },
  }
}
