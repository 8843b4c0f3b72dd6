// Answers what was never a request: bytes that are no HTTP, heads that are too large, clients that
// are too slow. Ends the connection.
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { requestIdFrom } from '../process/request-id.ts'
import { type Problem, problemHeaders, problemTypes, renderProblem } from './problem.ts'

const problemOfError: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: {
    name: 'headers-too-large',
    detail: 'The request line and headers have more than 16 KiB',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    name: 'request-timeout',
    detail: 'The request was not complete in time',
  },
}

/** Writes a problem document on a connection that has no request to answer, and closes it. */
export function refuseConnection(given: {
  readonly error: NodeJS.ErrnoException
  readonly socket: Duplex
  readonly baseUrl: string
}): void {
  const { error, socket, baseUrl } = given
  if (error.code === 'ECONNRESET' || !socket.writable || hasAnswerBegun(socket)) {
    socket.destroy()
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
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head.join('')}\r\n${body}`,
    () => {
      socket.destroy()
    },
  )
}

/** Whether an answer to an earlier request is on its way: ours would land in the middle of it. */
function hasAnswerBegun(socket: Duplex): boolean {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return (
    typeof message === 'object' && message !== null && Reflect.get(message, 'headersSent') === true
  )
}
