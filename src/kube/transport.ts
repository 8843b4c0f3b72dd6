// Carries calls to the API server over few connections that are kept and shared by all. Knows no
// resource; deadlines are its callers'.
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { ClusterAccess, Credentials } from './access.ts'
import { KubeError } from './kube-error.ts'

/** One call; it ends when `signal` aborts, also while its answer is being read. */
export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its query. */
  readonly path: string
  readonly contentType?: string
  readonly body?: string
  readonly signal: AbortSignal
}

/** The head of an answer; its body comes piece by piece. */
export interface KubeAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: AsyncIterable<Buffer>
}

/** Sends calls. */
export interface Transport {
  /** Throws KubeError with status 0 where there is no answer. */
  readonly send: (request: KubeRequest) => Promise<KubeAnswer>
  /** The host that is called, for metrics. */
  readonly host: () => string
  /** Closes what is open. */
  readonly close: () => void
}

const SOCKETS_MAX = 64
const FREE_SOCKETS_MAX = 8
/** A peer that is gone without a word is noticed by the system. */
const TCP_PROBE_MS = 30_000
const FREE_SOCKET_MS_MAX = 50_000

/** A transport over HTTP/1.1, whose connections live on between calls. */
export function createTransport(access: ClusterAccess): Transport {
  let agent: HttpAgent | undefined
  let madeFor = ''
  let host = 'unknown'
  const agentFor = ({ server, tls }: Credentials): HttpAgent => {
    const key = JSON.stringify([server, tls])
    if (agent !== undefined && key === madeFor) return agent
    agent?.destroy() // what it carries begins anew, with the certificates of now
    const options = {
      keepAlive: true,
      keepAliveMsecs: TCP_PROBE_MS,
      maxSockets: SOCKETS_MAX,
      maxFreeSockets: FREE_SOCKETS_MAX,
      timeout: FREE_SOCKET_MS_MAX,
      scheduling: 'lifo' as const,
    }
    agent = isPlain(server) ? new HttpAgent(options) : new HttpsAgent({ ...options, ...tls })
    madeFor = key
    return agent
  }
  const sendOnce = async (request: KubeRequest) => {
    const credentials = await access.read().catch((cause: unknown) => {
      throw unreachable('the credentials cannot be read', cause)
    })
    host = new URL(credentials.server).host
    return exchange({ request, credentials, agent: agentFor(credentials) })
  }
  return {
    async send(request) {
      try {
        const answer = await sendOnce(request)
        if (answer.status === 401) access.forget()
        return answer
      } catch (error) {
        // A kept connection that the server closed as we wrote: the call was never begun.
        if (!(error instanceof StaleConnection) || request.signal.aborted) throw error
        return sendOnce(request)
      }
    },
    host: () => host,
    close() {
      agent?.destroy()
    },
  }
}

/** A connection that had served before was closed under a call. */
class StaleConnection extends KubeError {}

function exchange(given: {
  request: KubeRequest
  credentials: Credentials
  agent: HttpAgent
}): Promise<KubeAnswer> {
  const { request, credentials, agent } = given
  const { method, path, contentType, body, signal } = request
  const { server, headers } = credentials
  const send = isPlain(server) ? httpRequest : httpsRequest
  const base = server.replace(/\/$/, '')
  return new Promise((resolve, reject) => {
    const call = send(base + path, {
      method,
      agent,
      signal,
      timeout: 0,
      headers: {
        ...headers,
        Accept: 'application/json',
        'User-Agent': 'curtail-controller',
        ...(contentType !== undefined && { 'Content-Type': contentType }),
        ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
      },
    })
    call.on('error', (cause: NodeJS.ErrnoException) => {
      const isStale = call.reusedSocket && cause.code === 'ECONNRESET'
      const message = 'the API server does not answer'
      reject(
        isStale
          ? new StaleConnection(message, { status: 0, reason: 'Unreachable', cause })
          : unreachable(message, cause),
      )
    })
    call.on('response', (answer: IncomingMessage) => {
      answer.on('error', () => undefined) // who reads the body is told
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: answer })
    })
    call.end(body)
  })
}

function isPlain(server: string): boolean {
  return server.startsWith('http://')
}

function unreachable(message: string, cause: unknown): KubeError {
  return new KubeError(`${message}: ${textOf(cause)}`, { status: 0, reason: 'Unreachable', cause })
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
