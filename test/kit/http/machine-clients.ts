// Clients of the distributed service in tests: they keep connections alive and retry a create after
// 503 with the same Idempotency-Key, also at another process.
import { setTimeout as sleep } from 'node:timers/promises'
import { type HttpClient, openHttpClient } from './http-client.ts'
import { codeOf, createLinkRequest } from './client.ts'
import type { Machine } from '../processes/many-machines.ts'
import { type RawResponse, type RawRequest, headerOf, jsonOf } from './raw-http.ts'

const RETRIES_MAX = 120
const RETRY_MS = 250
const LOOKUP_RETRIES_MAX = 20

/** Opens a client of each process. */
export function openHttpClients(machines: readonly Machine[]): {
  readonly all: readonly HttpClient[]
  readonly close: () => void
} {
  const all = machines.map(({ port }) => openHttpClient(port))
  const close = () => {
    for (const httpClient of all) httpClient.close()
  }
  return { all, close }
}

/** A link to create with an Idempotency-Key. */
export interface LinkRequest {
  readonly key: string
  readonly target: string
  readonly alias?: string
  readonly ttlDays?: number
}

/** The result of a create. */
export interface CreateResult {
  readonly request: LinkRequest
  /** The code of the link; undefined if the alias was taken. */
  readonly code: string | undefined
  readonly isReplay: boolean
  /** How many responses were 503 before. */
  readonly retries: number
}

/** The HTTP request that creates the link. */
export function linkRequestOf({ key, target, alias, ttlDays }: LinkRequest): RawRequest {
  const body = {
    long_url: target,
    ...(alias !== undefined && { custom_alias: alias }),
    ...(ttlDays !== undefined && { ttl_days: ttlDays }),
  }
  return createLinkRequest(body, { 'Idempotency-Key': key })
}

/** Sends the create to one process after the other until 201 or 409. Throws on other responses. */
export async function createWithRetries(
  httpClients: readonly HttpClient[],
  request: LinkRequest,
): Promise<CreateResult> {
  const httpRequest = linkRequestOf(request)
  for (let retries = 0; retries <= RETRIES_MAX; retries++) {
    const httpClient = httpClients[(request.key.length + retries) % httpClients.length]
    if (httpClient === undefined) throw new Error('no process to send the request to')
    const response = await httpClient.send(httpRequest)
    if (response.status === 201) {
      const isReplay = headerOf(response, 'Idempotency-Replayed') === 'true'
      return { request, code: codeOf(response), isReplay, retries }
    }
    if (response.status === 409) return { request, code: undefined, isReplay: false, retries }
    if (response.status !== 503) throw new Error(`${request.key}: ${describeResponse(response)}`)
    if (headerOf(response, 'Retry-After') === undefined) throw new Error('503 without Retry-After')
    await sleep(RETRY_MS)
  }
  throw new Error(`${request.key}: 503 after ${String(RETRIES_MAX)} retries`)
}

/** The status and the start of the body, for an error message. */
export function describeResponse(response: RawResponse): string {
  return `${String(response.status)} ${response.body.toString().slice(0, 300)}`
}

/** The name of the problem type in a response. */
export function problemOf(response: RawResponse): string {
  const { type } = jsonOf(response)
  return typeof type === 'string' ? type.slice(type.lastIndexOf('/') + 1) : ''
}

/**
 * The response to a lookup. On a busy machine a lookup may exceed its deadline: this retries after
 * 503.
 */
export async function resolveCode(httpClient: HttpClient, code: string): Promise<RawResponse> {
  for (let retries = 0; ; retries++) {
    const response = await httpClient.send({ path: `/${code}` })
    if (response.status !== 503 || retries === LOOKUP_RETRIES_MAX) return response
    if (headerOf(response, 'Retry-After') === undefined) throw new Error('503 without Retry-After')
    await sleep(RETRY_MS)
  }
}

/** Throws if the code does not redirect to its target. */
export async function expectRedirect(
  httpClient: HttpClient,
  code: string,
  target: string,
): Promise<void> {
  mustRedirectTo(await resolveCode(httpClient, code), { code, target })
}

/** Throws if a single lookup, without retries, does not redirect to the target. */
export async function expectRedirectWithoutRetry(
  httpClient: HttpClient,
  code: string,
  target: string,
): Promise<void> {
  mustRedirectTo(await httpClient.send({ path: `/${code}` }), { code, target })
}

function mustRedirectTo(
  response: RawResponse,
  { code, target }: { code: string; target: string },
): void {
  if (isRedirectTo(response, target)) return
  const location = String(headerOf(response, 'Location'))
  throw new Error(`/${code} is not ${target}, but ${describeResponse(response)} ${location}`)
}

/** Whether a response redirects to this target. */
export function isRedirectTo(response: RawResponse, target: string): boolean {
  return response.status === 302 && headerOf(response, 'Location') === target
}

/** Runs `work` for every item, `flight` items at a time. */
export async function inParallel<T>(
  flight: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = [...items].reverse()
  const worker = async () => {
    for (let item = remaining.pop(); item !== undefined; item = remaining.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: flight }, worker))
}
