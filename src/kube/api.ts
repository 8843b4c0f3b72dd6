// Calls to the Kubernetes API: JSON requests with a deadline, and streams of lines. Every failure
// is a KubeError; this module does not retry. No deadline covers the transport's credential read.
import type { Metrics } from '../telemetry/metrics.ts'
import { messageOf } from '../resilience/message-of.ts'
import { errorOfStatus, KubeError } from './kube-error.ts'
import { createDeadline, type Scheduler } from './scheduler.ts'
import type { KubeResponse, KubeRequest, Transport } from './transport.ts'

/** One call. */
interface KubeCall {
  readonly method: KubeRequest['method']
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  /** Serialized as JSON. */
  readonly body?: unknown
  /** @default application/json */
  readonly contentType?: string
  /** Deadline of the call in milliseconds. @default 10_000 */
  readonly msMax?: number
  /** A list that fills a cache. @default false */
  readonly isForCache?: boolean
  /** The media type of the response. @default application/json */
  readonly accept?: string
  readonly signal?: AbortSignal | undefined
}

/** A call whose response is a stream of lines. */
interface KubeStream {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** Maximum time without data in milliseconds; then the connection counts as dead. */
  readonly idleMsMax: number
  readonly signal: AbortSignal
  /** The media type of the response. @default application/json */
  readonly accept?: string
  /** Called when the server has accepted the call, before the first line. */
  readonly onOpen?: () => void
}

/** The API server. */
export interface KubeApi {
  /** Resolves to the response document. Throws KubeError. */
  readonly call: (call: KubeCall) => Promise<unknown>
  /** Yields each line until the server closes the stream. Throws KubeError. */
  readonly lines: (call: KubeStream) => AsyncGenerator<string, void>
}

/** Server-side apply: takes ownership of every field in the body, even from other managers. */
export const APPLY = {
  contentType: 'application/apply-patch+yaml',
  query: { fieldManager: 'curtail-controller', force: 'true' },
} as const

const CALL_MS_MAX = 10_000
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024
/** A page for a cache is in memory several times during parsing. An object has at most 3 MiB. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024
const LINE_BYTES_MAX = 8 * 1024 * 1024
const NEWLINE = 0x0a

/** A response is too long; a page with fewer objects can be short enough. */
export class ResponseTooLong extends KubeError {
  constructor() {
    const message = 'a response of the API server is too long'
    super(message, { status: 0, reason: 'InvalidResponse' })
  }
}

/** Creates an API client over a transport. */
export function createKubeApi(deps: {
  readonly transport: Pick<Transport, 'send' | 'host'>
  readonly scheduler: Scheduler
  readonly metrics: Pick<Metrics, 'apiRequests'>
}): KubeApi {
  const { transport, scheduler, metrics } = deps
  const send = async (request: KubeRequest) => {
    const count = (code: string) => {
      metrics.apiRequests.inc({ code, method: request.method, host: transport.host() })
    }
    try {
      const response = await transport.send(request)
      count(String(response.status))
      return response
    } catch (error) {
      count('<error>') // client-go's label value
      throw error
    }
  }
  return {
    async call({ method, path, query = {}, body, contentType, msMax = CALL_MS_MAX, ...given }) {
      const { signal, isForCache = false, accept } = given
      const deadline = createDeadline(scheduler, msMax, signal)
      try {
        const response = await send({
          method,
          path: path + queryOf(query),
          isForCache,
          signal: deadline.signal,
          ...(accept !== undefined && { accept }),
          ...(body !== undefined && {
            body: JSON.stringify(body),
            contentType: contentType ?? 'application/json',
          }),
        })
        const content = await readBody(response, isForCache ? PAGE_BYTES_MAX : RESPONSE_BYTES_MAX)
        if (response.status >= 300) throw errorOfResponse(response, content)
        return parse(content)
      } catch (error) {
        const timeout = deadline.timedOut() && `${method} ${path} timed out after ${msMax} ms`
        throw toKubeError(error, timeout)
      } finally {
        deadline.clear()
      }
    },
    lines: (call) => readLines({ call, send, scheduler }),
  }
}

async function* readLines(input: {
  call: KubeStream
  send: (request: KubeRequest) => Promise<KubeResponse>
  scheduler: Scheduler
}): AsyncGenerator<string, void> {
  const { call, send, scheduler } = input
  const path = call.path + queryOf(call.query)
  const closing = new AbortController()
  const state = { isIdle: false }
  const startIdleTimer = () =>
    scheduler.after(call.idleMsMax, () => {
      state.isIdle = true
      closing.abort()
    })
  const onAbort = () => {
    closing.abort()
  }
  let cancel = startIdleTimer()
  call.signal.addEventListener('abort', onAbort)
  if (call.signal.aborted) closing.abort()
  try {
    const { signal } = closing
    const accept = call.accept !== undefined && { accept: call.accept }
    const response = await send({ method: 'GET', path, isForCache: true, signal, ...accept })
    if (response.status >= 300)
      throw errorOfResponse(response, await readBody(response, PAGE_BYTES_MAX))
    call.onOpen?.()
    /** The incomplete last line. */
    let rest: Buffer = Buffer.alloc(0)
    for await (const chunk of response.body) {
      cancel()
      cancel = startIdleTimer()
      const data: Buffer = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      const end = data.lastIndexOf(NEWLINE)
      rest = data.subarray(end + 1)
      if (rest.length > LINE_BYTES_MAX) throw protocolError('a line of a watch is too long')
      for (const line of data.toString('utf8', 0, end + 1).split('\n')) if (line) yield line
    }
    if (rest.length > 0) throw protocolError('a watch closed in the middle of a line')
  } catch (error) {
    throw toKubeError(error, state.isIdle && `no data for ${call.idleMsMax} ms`)
  } finally {
    cancel()
    call.signal.removeEventListener('abort', onAbort)
    closing.abort() // the connection closes when the caller stops reading
  }
}

async function readBody({ body }: KubeResponse, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new ResponseTooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function queryOf(query: Readonly<Record<string, string>>): string {
  const encoded = new URLSearchParams(query).toString()
  return encoded === '' ? '' : `?${encoded}`
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    throw protocolError('a response of the API server is not JSON')
  }
}

function errorOfResponse({ status, headers }: KubeResponse, body: string): KubeError {
  const seconds = Number(headers['retry-after'])
  const hasDelay = headers['retry-after'] !== undefined && Number.isFinite(seconds)
  const retryAfterMs = hasDelay ? seconds * 1000 : undefined
  try {
    return errorOfStatus(JSON.parse(body), { status, retryAfterMs })
  } catch {
    const message = `the API server returned ${status}: ${body.slice(0, 200)}`
    return new KubeError(message, { status, reason: 'Unknown', retryAfterMs })
  }
}

function protocolError(message: string): KubeError {
  return new KubeError(message, { status: 0, reason: 'InvalidResponse' })
}

/** Converts `error` to a KubeError; `timeout` is the message if a deadline caused the error. */
function toKubeError(error: unknown, timeout: string | false): KubeError {
  if (timeout !== false)
    return new KubeError(timeout, { status: 0, reason: 'Timeout', cause: error })
  if (error instanceof KubeError) return error
  const message = `the call to the API server failed: ${messageOf(error)}`
  return new KubeError(message, { status: 0, reason: 'Unreachable', cause: error })
}
