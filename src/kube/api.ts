// Calls of the Kubernetes API: JSON in and out within a deadline, or lines as they come. Every
// failure is a KubeError; nothing is tried again here.
import type { Metrics } from '../telemetry/metrics.ts'
import { errorOfStatus, KubeError } from './kube-error.ts'
import { deadlineOn, type Scheduler } from './scheduler.ts'
import type { KubeAnswer, KubeRequest, Transport } from './transport.ts'

/** One call. */
interface KubeCall {
  readonly method: KubeRequest['method']
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  /** Becomes JSON. */
  readonly body?: unknown
  /** @default application/json */
  readonly contentType?: string
  /** @default 10_000 */
  readonly msMax?: number
  readonly signal?: AbortSignal | undefined
}

/** A call whose answer is lines. */
interface KubeLines {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** Silence after which the connection counts as dead. */
  readonly idleMsMax: number
  readonly signal: AbortSignal
  /** Told once the server has begun to answer. */
  readonly onOpen?: () => void
}

/** The API server. */
export interface KubeApi {
  /** Resolves to the answer's document. Throws KubeError. */
  readonly call: (call: KubeCall) => Promise<unknown>
  /** Gives each line; ends as the server ends it. Throws KubeError. */
  readonly lines: (call: KubeLines) => AsyncGenerator<string, void>
}

/** How an object is applied: what we say is ours, whoever said it before. */
export const APPLY = {
  contentType: 'application/apply-patch+yaml',
  query: { fieldManager: 'curtail-controller', force: 'true' },
} as const

const CALL_MS_MAX = 10_000
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const LINE_BYTES_MAX = 8 * 1024 * 1024
/** A server may ask for no more patience than this. */
const RETRY_AFTER_MS_MAX = 60_000

/** Makes calls over a transport. */
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
      const answer = await transport.send(request)
      count(String(answer.status))
      return answer
    } catch (error) {
      count('<error>') // client-go's word
      throw error
    }
  }
  return {
    async call({ method, path, query = {}, body, contentType, msMax = CALL_MS_MAX, signal }) {
      const deadline = deadlineOn(scheduler, msMax, signal)
      try {
        const answer = await send({
          method,
          path: path + queryOf(query),
          signal: deadline.signal,
          ...(body !== undefined && {
            body: JSON.stringify(body),
            contentType: contentType ?? 'application/json',
          }),
        })
        const text = await textOf(answer)
        if (answer.status >= 300) throw refusalOf(answer, text)
        return parse(text)
      } catch (error) {
        throw failureOf(error, deadline.isLate() && `${method} ${path} took over ${msMax} ms`)
      } finally {
        deadline.end()
      }
    },
    lines: (call) => readLines({ call, send, scheduler }),
  }
}

async function* readLines(given: {
  call: KubeLines
  send: (request: KubeRequest) => Promise<KubeAnswer>
  scheduler: Scheduler
}): AsyncGenerator<string, void> {
  const { call, send, scheduler } = given
  const path = call.path + queryOf(call.query)
  const ending = new AbortController()
  const idle = { is: false }
  const expire = () =>
    scheduler.after(call.idleMsMax, () => {
      idle.is = true
      ending.abort()
    })
  const follow = () => {
    ending.abort()
  }
  let cancel = expire()
  call.signal.addEventListener('abort', follow)
  if (call.signal.aborted) ending.abort()
  try {
    const answer = await send({ method: 'GET', path, signal: ending.signal })
    if (answer.status >= 300) throw refusalOf(answer, await textOf(answer))
    call.onOpen?.()
    let rest: Buffer = Buffer.alloc(0)
    for await (const piece of answer.body) {
      cancel()
      cancel = expire()
      const whole: Buffer = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      const end = whole.lastIndexOf(10)
      rest = whole.subarray(end + 1)
      if (rest.length > LINE_BYTES_MAX) throw torn('a line of a watch is too long')
      for (const line of whole.toString('utf8', 0, end + 1).split('\n')) if (line) yield line
    }
    if (rest.length > 0) throw torn('a watch ended within a line')
  } catch (error) {
    throw failureOf(error, idle.is && `nothing came for ${call.idleMsMax} ms`)
  } finally {
    cancel()
    call.signal.removeEventListener('abort', follow)
    ending.abort() // whoever stops reading closes the connection
  }
}

async function textOf({ body }: KubeAnswer): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.length
    if (bytes > ANSWER_BYTES_MAX) throw torn('an answer of the API server is too long')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function queryOf(query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString()
  return text === '' ? '' : `?${text}`
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw torn('an answer of the API server is no JSON')
  }
}

function refusalOf({ status, headers }: KubeAnswer, text: string): KubeError {
  const seconds = Number(headers['retry-after'])
  const waits = headers['retry-after'] !== undefined && Number.isFinite(seconds)
  const retryAfterMs = waits ? Math.min(seconds * 1000, RETRY_AFTER_MS_MAX) : undefined
  try {
    return errorOfStatus(JSON.parse(text), { status, retryAfterMs })
  } catch {
    const message = `the API server answered ${status}: ${text.slice(0, 200)}`
    return new KubeError(message, { status, reason: 'Unknown', retryAfterMs })
  }
}

function torn(message: string): KubeError {
  return new KubeError(message, { status: 0, reason: 'Torn' })
}

/** What went wrong, said as a KubeError; `late` says that it was the time. */
function failureOf(error: unknown, late: string | false): KubeError {
  if (late !== false) return new KubeError(late, { status: 0, reason: 'Late', cause: error })
  if (error instanceof KubeError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new KubeError(message, { status: 0, reason: 'Unreachable', cause: error })
}
