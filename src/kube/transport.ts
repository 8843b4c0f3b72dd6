// HTTP/1.1 transport to the API server over keep-alive connections. Lists and watches for caches
// have connections of their own, so that they never delay other calls. Callers set the deadlines.
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { ClusterAccess, Credentials } from './access.ts'
import { messageOf } from '../resilience/message-of.ts'
import { KubeError } from './kube-error.ts'

/** One request; aborting `signal` cancels it, even while the response is read. */
export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Includes the query. */
  readonly path: string
  readonly contentType?: string
  readonly body?: string
  /** A list or a watch that fills a cache. @default false */
  readonly isForCache?: boolean
  /** The media type of the response. @default application/json */
  readonly accept?: string
  readonly signal: AbortSignal
}

/** Status and headers of a response; the body is streamed. */
export interface KubeResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: AsyncIterable<Buffer>
}

/** Sends requests. */
export interface Transport {
  /** Throws KubeError, with status 0 if there is no response. */
  readonly send: (request: KubeRequest) => Promise<KubeResponse>
  /** The host of the API server, for metrics; `unknown` before the first request. */
  readonly host: () => string
  /** Closes all connections. */
  readonly close: () => void
}

const SOCKETS_MAX = 64
/**
 * Each cache uses one connection. The settings allow caches of CodePools and Jobs in 32 namespaces,
 * of two resources in the 100 namespaces with RateLimitPolicies, and of 128 operator lists: 392.
 */
const CACHE_SOCKETS_MAX = 400
const FREE_SOCKETS_MAX = 8
/** TCP keepalive detects a peer that disappeared without closing the connection. */
const TCP_KEEPALIVE_MS = 30_000
const FREE_SOCKET_MS_MAX = 50_000

/** Creates an HTTP/1.1 transport with keep-alive connections. */
export function createTransport(access: ClusterAccess): Transport {
  const agents = [createAgentSource(SOCKETS_MAX), createAgentSource(CACHE_SOCKETS_MAX)] as const
  let host = 'unknown'
  const sendOnce = async (request: KubeRequest) => {
    const credentials = await access.read().catch((cause: unknown) => {
      throw unreachable('the credentials cannot be read', cause)
    })
    host = new URL(credentials.server).host
    const agent = agents[request.isForCache === true ? 1 : 0].agentFor(credentials)
    return exchange({ request, credentials, agent })
  }
  return {
    async send(request) {
      try {
        const response = await sendOnce(request)
        if (response.status === 401) access.invalidate()
        return response
      } catch (error) {
        // Usually the server closed an idle connection, and did not process the request. If it did,
        // the second request is rejected or changes nothing.
        if (!(error instanceof StaleConnection) || request.signal.aborted) throw error
        return sendOnce(request)
      }
    },
    host: () => host,
    close() {
      for (const { destroy } of agents) destroy()
    },
  }
}

/** Connections with the current credentials. */
function createAgentSource(maxSockets: number) {
  let agent: HttpAgent | undefined
  /** Address and TLS options of `agent`. */
  let agentKey = ''
  return {
    agentFor: ({ server, tls }: Credentials): HttpAgent => {
      const key = JSON.stringify([server, tls])
      if (agent !== undefined && key === agentKey) return agent
      agent?.destroy() // aborts its requests: retries use the current certificates
      const options = {
        keepAlive: true,
        keepAliveMsecs: TCP_KEEPALIVE_MS,
        maxSockets,
        maxFreeSockets: FREE_SOCKETS_MAX,
        timeout: FREE_SOCKET_MS_MAX,
        scheduling: 'lifo' as const,
      }
      agent = isPlaintext(server) ? new HttpAgent(options) : new HttpsAgent({ ...options, ...tls })
      agentKey = key
      return agent
    },
    destroy: () => agent?.destroy(),
  }
}

/** The server closed a reused connection during a request. */
class StaleConnection extends KubeError {}

function exchange(input: {
  request: KubeRequest
  credentials: Credentials
  agent: HttpAgent
}): Promise<KubeResponse> {
  const { request, credentials, agent } = input
  const { method, path, contentType, body, accept = 'application/json', signal } = request
  const { server, headers } = credentials
  const send = isPlaintext(server) ? httpRequest : httpsRequest
  const base = server.replace(/\/$/, '')
  return new Promise((resolve, reject) => {
    const call = send(base + path, {
      method,
      agent,
      signal,
      timeout: 0,
      headers: {
        ...headers,
        Accept: accept,
        'User-Agent': 'curtail-controller',
        ...(contentType !== undefined && { 'Content-Type': contentType }),
        ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
      },
    })
    call.on('error', (cause: NodeJS.ErrnoException) => {
      const isStale = call.reusedSocket && cause.code === 'ECONNRESET'
      const message = 'the request to the API server failed'
      reject(
        isStale
          ? new StaleConnection(message, { status: 0, reason: 'Unreachable', cause })
          : unreachable(message, cause),
      )
    })
    call.on('response', (response: IncomingMessage) => {
      response.on('error', () => undefined) // the reader of the body gets the error
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response })
    })
    call.end(body)
  })
}

function isPlaintext(server: string): boolean {
  return server.startsWith('http://')
}

function unreachable(message: string, cause: unknown): KubeError {
  return new KubeError(`${message}: ${messageOf(cause)}`, {
    status: 0,
    reason: 'Unreachable',
    cause,
  })
}
