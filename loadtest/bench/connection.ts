// One keep-alive connection of the load generator: sends serialised requests and reports each
// response. It delimits responses by Content-Length only, and does not interpret them.
import { connect, type Socket } from 'node:net'

/** A response; `text` has its headers and body. */
export interface RawResponse {
  readonly status: number
  readonly text: string
}

/** A connection with at most one request in flight. */
export interface Connection {
  send(request: Buffer): void
  close(): void
}

const READ_BYTES = 64 * 1024
const RESPONSE_BYTES_MAX = 1024 * 1024
const contentLength = /\r\ncontent-length: (\d+)\r\n/i

/** Connects to `port` on loopback. Later errors go to `onFault`. */
export async function openConnection(options: {
  readonly port: number
  /** The local address. @default 127.0.0.1 */
  readonly from?: string
  readonly onResponse: (response: RawResponse) => void
  readonly onFault: (error: Error) => void
}): Promise<Connection> {
  let rest = ''
  let closing = false
  const take = (bytes: number, buffer: Uint8Array) => {
    rest += (buffer as Buffer).toString('latin1', 0, bytes)
    const response = parseResponse(rest)
    if (response === 'malformed' || rest.length > RESPONSE_BYTES_MAX) {
      options.onFault(new Error(`Cannot parse a response: ${rest.slice(0, 200)}`))
    } else if (response !== 'incomplete') {
      rest = ''
      options.onResponse(response)
    }
    return true
  }
  const onread = { buffer: Buffer.allocUnsafe(READ_BYTES), callback: take }
  const { port, from: localAddress = '127.0.0.1' } = options
  const socket: Socket = connect({ host: '127.0.0.1', port, localAddress, noDelay: true, onread })
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  socket.on('error', options.onFault)
  socket.on('close', () => {
    if (!closing) options.onFault(new Error('the server closed a connection'))
  })
  return {
    send: (request) => void socket.write(request),
    close() {
      closing = true
      socket.destroy()
    },
  }
}

function parseResponse(text: string): RawResponse | 'incomplete' | 'malformed' {
  const headersEnd = text.indexOf('\r\n\r\n')
  if (headersEnd < 0) return 'incomplete'
  const length = contentLength.exec(text)?.[1]
  if (length === undefined) return 'malformed'
  const missing = headersEnd + 4 + Number(length) - text.length
  if (missing > 0) return 'incomplete'
  return missing < 0 ? 'malformed' : { status: Number(text.slice(9, 12)), text }
}
