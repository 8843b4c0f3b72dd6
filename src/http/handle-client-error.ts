// Node.js's `clientError`: responds to bytes that are not HTTP, headers that are too large and
// requests that time out, and closes the connection.
import { ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { requestIdFrom } from '../telemetry/request-id.ts'
import { lingeringClose, isClosing } from './lingering-close.ts'
import { type Problem, problemHeaders, problemTypes, renderProblem } from './problem.ts'

const problemOfError: Readonly<Record<string, Problem>> = {
  // Also the code of bytes that are not HTTP, such as a TLS handshake.
  HPE_INVALID_METHOD: {
    name: 'bad-request',
    detail: 'The request does not start with a supported method',
  },
  HPE_HEADER_OVERFLOW: {
    name: 'headers-too-large',
    detail: 'The request line and headers have more than 16 KiB',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    name: 'request-timeout',
    detail: 'The request was not complete within the time limit',
  },
}

/**
 * Writes a problem document to a connection whose next bytes are not a request, and closes it. If
 * earlier requests still await responses, only these responses are sent: the client would take the
 * problem for one of them.
 */
export function handleClientError(given: {
  readonly error: NodeJS.ErrnoException
  readonly socket: Duplex
  readonly baseUrl: string
}): void {
  const { error, socket, baseUrl } = given
  if (isClosing(socket)) return
  const pending = pendingResponse(socket)
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  if (pending !== undefined && (pending.req.complete || pending.headersSent)) {
    closeAfterResponses(socket, pending)
    return
  }
  const problem = problemOfError[error.code ?? ''] ?? {
    name: 'bad-request',
    detail: 'The bytes received are not an HTTP/1.1 request',
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
  const headerLines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${headerLines.join('')}\r\n${body}`,
  )
  lingeringClose(socket)
}

/** The response that the connection awaits, to a request that may still be arriving. */
function pendingResponse(socket: Duplex): ServerResponse | undefined {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return message instanceof ServerResponse ? message : undefined
}

/** Closes after every pending response has been sent, in order. */
function closeAfterResponses(socket: Duplex, pending: ServerResponse): void {
  if (closingAfterResponses.has(socket)) return
  closingAfterResponses.add(socket)
  socket.pause() // further input is not read
  const next = (response: ServerResponse) => {
    response.once('finish', () => {
      const following = pendingResponse(socket)
      if (following === undefined || following === response) lingeringClose(socket)
      else next(following)
    })
  }
  next(pending)
}

/** Whether a connection is paused, and closes once its responses are sent. */
export function closesAfterResponses(socket: Duplex): boolean {
  return closingAfterResponses.has(socket)
}

const closingAfterResponses = new WeakSet<Duplex>()
