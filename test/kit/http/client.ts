// A client of the public HTTP API for tests: it keeps its connections alive and validates every
// response against the service's own OpenAPI document.
import { openHttpClient } from './http-client.ts'
import { createOpenApiCheck } from './openapi-check.ts'
import { type RawResponse, RESPONSE_MS_MAX, type RawRequest, jsonOf } from './raw-http.ts'

/** Sends requests to one service; any number concurrently, each on its own connection. */
export interface Client {
  send(request: RawRequest, msMax?: number): Promise<RawResponse>
  /** POST /v1/urls with this body as JSON; a string or buffer is sent unchanged. */
  create(body: unknown, headers?: RawRequest['headers']): Promise<RawResponse>
  /** GET /{code}. */
  resolve(code: string): Promise<RawResponse>
  close(): void
}

/** Opens a client of the service at `port`; `from` is the local address of its connections. */
export async function openClient(port: number, from?: string): Promise<Client> {
  const httpClient = openHttpClient(port, { from, msMax: RESPONSE_MS_MAX })
  const check = createOpenApiCheck(jsonOf(await httpClient.send({ path: '/openapi.json' })))
  const send = async (request: RawRequest, msMax?: number) => {
    const response = await httpClient.send(request, msMax)
    check(request, response)
    return response
  }
  return {
    send,
    create: (body, headers) => send(createLinkRequest(body, headers)),
    resolve: (code) => send({ path: `/${code}` }),
    close() {
      httpClient.close()
    },
  }
}

/** A request that creates a link. */
export function createLinkRequest(body: unknown, headers?: RawRequest['headers']): RawRequest {
  return {
    method: 'POST',
    path: '/v1/urls',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  }
}

/** The code of the link in a 201 response. */
export function codeOf(response: RawResponse): string {
  const { short_url: shortUrl } = jsonOf(response)
  if (response.status !== 201 || typeof shortUrl !== 'string') {
    throw new Error(`no link was created: ${response.status} ${response.body.toString()}`)
  }
  return shortUrl.slice(shortUrl.lastIndexOf('/') + 1)
}
