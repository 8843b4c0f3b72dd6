// An HTTP/1.1 client on a plain socket: a test controls each byte that it sends and reads each byte
// that it receives. Strings are latin1 bytes, so that a test can send invalid HTTP.
import { connect, type Socket } from 'node:net'

/** A request; `Host` and `Content-Length` are added if absent (an empty list = no header). */
export interface RawRequest {
  readonly method?: string
  /** The request target, unchanged. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** A string is sent as UTF-8. */
  readonly body?: string | Buffer
}

/** A response. */
export interface RawResponse {
  readonly status: number
  /** As received: in order, names in their case, duplicates included. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
}

/** How to read a response. */
export interface ResponseOptions {
  /** Whether it is the response to HEAD, which has no body regardless of its Content-Length. */
  readonly isBodyless?: boolean
  readonly msMax?: number
}

/** The default deadline of a response. */
export const RESPONSE_MS_MAX = 10_000

/** The bytes of a request. */
export function requestBytes(request: RawRequest): Buffer {
  const body = Buffer.from(request.body ?? '')
  const own = Object.entries(request.headers ?? {})
  const isPresent = (name: string) => own.some(([key]) => key.toLowerCase() === name)
  const headers = own.flatMap(([name, value]) =>
    (typeof value === 'string' ? [value] : value).map((one) => `${name}: ${one}\r\n`),
  )
  if (!isPresent('host')) headers.unshift('Host: 127.0.0.1\r\n')
  const isSized = isPresent('content-length') || isPresent('transfer-encoding')
  if (request.body !== undefined && !isSized) {
    headers.push(`Content-Length: ${body.length}\r\n`)
  }
  const { method = 'GET', path } = request
  const start = `${method} ${path} HTTP/1.1\r\n${headers.join('')}\r\n`
  return Buffer.concat([Buffer.from(start, 'latin1'), body])
}

/** Every value of a header, in order. */
export function headersOf(response: RawResponse, name: string): string[] {
  return response.headers.flatMap(([key, value]) =>
    key.toLowerCase() === name.toLowerCase() ? [value] : [],
  )
}

/** The value of a header; `undefined` if it is absent. Throws if there are several. */
export function headerOf(response: RawResponse, name: string): string | undefined {
  const values = headersOf(response, name)
  if (values.length > 1) throw new Error(`the response has ${values.length} headers ${name}`)
  return values[0]
}

/** The response body as JSON. */
export function jsonOf(response: RawResponse): Record<string, unknown> {
  return JSON.parse(response.body.toString()) as Record<string, unknown>
}

/** Opens a connection to `port` of this machine; `from` is its source address. */
export function openConnection(port: number, from = '127.0.0.1'): Promise<RawConnection> {
  return new Promise((resolve, reject) => {
    const host = '127.0.0.1'
    const socket = connect({ port, host, localAddress: from, noDelay: true })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.removeListener('error', reject)
      resolve(new RawConnection(socket))
    })
  })
}

interface PendingResponse {
  readonly isBodyless: boolean
  readonly resolve: (response: RawResponse) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** How the server closed the connection: by a FIN (`end`) or by a reset. */
export type CloseKind = 'end' | 'reset'

/** A connection; it returns responses in the order of arrival. */
export class RawConnection {
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<CloseKind>
  readonly socket: Socket
  #rest: Buffer = Buffer.alloc(0)
  #closedBy: CloseKind | undefined
  readonly #pending: PendingResponse[] = []

  constructor(socket: Socket) {
    this.socket = socket
    this.closed = new Promise((resolve) => {
      const finish = (kind: CloseKind) => {
        this.#closedBy ??= kind
        this.#deliver()
        resolve(this.#closedBy)
      }
      socket.on('end', () => {
        finish('end')
      })
      socket.on('error', () => {
        finish('reset')
      })
      socket.on('close', () => {
        finish('reset')
      })
    })
    socket.on('data', (chunk: Buffer) => {
      this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
      this.#deliver()
    })
  }

  /** Received bytes that belong to no returned response. */
  get rest(): Buffer {
    return this.#rest
  }

  /** Whether the server has closed it. */
  get isClosed(): boolean {
    return this.#closedBy !== undefined
  }

  /** Sends bytes unchanged; a string is latin1. */
  send(bytes: string | Buffer): void {
    if (!this.socket.destroyed) this.socket.write(bytes, 'latin1')
  }

  /** The next response. Throws at the deadline, or if the connection closes before. */
  nextResponse(options: ResponseOptions = {}): Promise<RawResponse> {
    const { isBodyless = false, msMax = RESPONSE_MS_MAX } = options
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.close()
        reject(new Error(`no response within ${msMax} ms`))
      }, msMax)
      this.#pending.push({ isBodyless, resolve, reject, timer })
      this.#deliver()
    })
  }

  /** Sends a request and returns its response. */
  exchange(request: RawRequest, msMax = RESPONSE_MS_MAX): Promise<RawResponse> {
    this.send(requestBytes(request))
    return this.nextResponse({ isBodyless: request.method === 'HEAD', msMax })
  }

  /** Destroys the connection. */
  close(): void {
    this.socket.destroy()
  }

  #deliver(): void {
    for (let next = this.#pending[0]; next !== undefined; next = this.#pending[0]) {
      let parsed: { response: RawResponse; length: number } | undefined
      try {
        parsed = parseResponse(this.#rest, next.isBodyless)
      } catch (error) {
        this.#fail(next, error as Error)
        continue
      }
      if (parsed === undefined) {
        if (this.#closedBy === undefined) return
        const closedBy = this.#closedBy
        this.#fail(next, new Error(`the connection closed (${closedBy}) without a response`))
        continue
      }
      this.#rest = this.#rest.subarray(parsed.length)
      this.#pending.shift()
      clearTimeout(next.timer)
      next.resolve(parsed.response)
    }
  }

  #fail(pending: PendingResponse, error: Error): void {
    this.#pending.shift()
    clearTimeout(pending.timer)
    pending.reject(error)
  }
}

/** The first response in `bytes`; `undefined` if it is incomplete. Throws if it is invalid. */
function parseResponse(
  bytes: Buffer,
  isBodyless: boolean,
): { response: RawResponse; length: number } | undefined {
  const headersEnd = bytes.indexOf('\r\n\r\n')
  if (headersEnd < 0) return undefined
  const [first = '', ...lines] = bytes.subarray(0, headersEnd).toString('latin1').split('\r\n')
  const matched = /^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(first)
  if (matched === null) throw new Error(`not a status line: ${JSON.stringify(first)}`)
  const status = Number(matched[1])
  const headers = lines.map(parseHeader)
  const response = { status, headers, body: Buffer.alloc(0) }
  const bodyStart = headersEnd + 4
  const hasBody = !isBodyless && status >= 200 && status !== 204 && status !== 304
  if (!hasBody) return { response, length: bodyStart }
  const length = headerOf(response, 'Content-Length')
  if (length === undefined) throw new Error(`a response ${status} without Content-Length`)
  const end = bodyStart + Number(length)
  if (bytes.length < end) return undefined
  const body = Buffer.from(bytes.subarray(bodyStart, end))
  return { response: { ...response, body }, length: end }
}

function parseHeader(line: string): readonly [string, string] {
  const matched = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/.exec(
    line,
  )
  if (matched === null) throw new Error(`not a header: ${JSON.stringify(line)}`)
  return [matched[1] ?? '', matched[2] ?? '']
}
