// Answers what was never a request: bytes that are no HTTP, heads that are too large, clients that
// are too slow. Ends the connection.
import { ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { requestIdFrom } from '../telemetry/request-id.ts'
import { closeGently, isClosing } from './close-gently.ts'
import { type Problem, problemHeaders, problemTypes, renderProblem } from './problem.ts'

const problemOfError: Readonly<Record<string, Problem>> = {
  HPE_INVALID_METHOD: { name: 'bad-request', detail: 'The method is none that is known here' },
  HPE_HEADER_OVERFLOW: {
    name: 'headers-too-large',
    detail: 'The request line and headers have more than 16 KiB',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    name: 'request-timeout',
    detail: 'The request was not complete in time',
  },
}

/**
 * Writes a problem document on a connection whose next bytes are no request, and closes it. Whole
 * requests before them are answered first, and then nothing is added: a refusal in their place
 * would be taken for theirs.
 */
export function refuseConnection(given: {
  readonly error: NodeJS.ErrnoException
  readonly socket: Duplex
  readonly baseUrl: string
}): void {
  const { error, socket, baseUrl } = given
  if (isClosing(socket)) return
  const pending = answerUnderWay(socket)
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  if (pending !== undefined && (pending.req.complete || pending.headersSent)) {
    closeAfterAnswers(socket, pending)
    return
  }
  const problem = problemOfError[error.code ?? ''] ?? {
    name: 'bad-request',
    detail: 'The bytes received are no request of HTTP/1.1',
  }
  const requestId = requestIdFrom(undefined)
  const body = renderProblem(problem, { baseUrl, requestId })
  const { status } = problemTypes[problem.name]
  const headers = {
    ...problemHeaders(problem),
    'X-Request-Id': requestId,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head.join('')}\r\n${body}`)
  closeGently(socket)
}

/** The answer that the connection waits for, to a request that came whole or is still coming. */
function answerUnderWay(socket: Duplex): ServerResponse | undefined {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return message instanceof ServerResponse ? message : undefined
}

/** Lets every answer that is under way reach its client, in their order, and closes then. */
function closeAfterAnswers(socket: Duplex, pending: ServerResponse): void {
  if (answering.has(socket)) return
  answering.add(socket)
  socket.pause() // what comes now is read by nobody
  const next = (answered: ServerResponse) => {
    answered.once('finish', () => {
      const following = answerUnderWay(socket)
      if (following === undefined || following === answered) closeGently(socket)
      else next(following)
    })
  }
  next(pending)
}

/** Connections that close once their answers are out. */
const answering = new WeakSet<Duplex>()
