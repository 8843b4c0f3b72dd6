// A client of HTTP/1.1 on a bare socket: what is sent and what comes back is seen byte for byte.
// Text stands for bytes (latin1), so that a test can send whatever it likes.
import { connect, type Socket } from 'node:net'

/** One request; `Host` and `Content-Length` are added unless given (an empty list = none). */
export interface Ask {
  readonly method?: string
  /** The request's target, as it is sent. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** Text is sent as UTF-8. */
  readonly body?: string | Buffer
}

/** One answer. */
export interface Answer {
  readonly status: number
  /** As they came: names in their case, in order, repeated where they were. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
}

/** How an answer is awaited. */
export interface Await {
  /** The answer to HEAD has no body, whatever its length says. */
  readonly isHead?: boolean
  readonly msMax?: number
}

/** How long an answer is awaited unless told. */
export const ANSWER_MS_MAX = 10_000

/** The bytes of a request. */
export function requestBytes(ask: Ask): Buffer {
  const body = Buffer.from(ask.body ?? '')
  const given = Object.entries(ask.headers ?? {})
  const isGiven = (name: string) => given.some(([key]) => key.toLowerCase() === name)
  const headers = given.flatMap(([name, value]) =>
    (typeof value === 'string' ? [value] : value).map((one) => `${name}: ${one}\r\n`),
  )
  if (!isGiven('host')) headers.unshift('Host: 127.0.0.1\r\n')
  if (ask.body !== undefined && !isGiven('content-length') && !isGiven('transfer-encoding')) {
    headers.push(`Content-Length: ${body.length}\r\n`)
  }
  const head = `${ask.method ?? 'GET'} ${ask.path} HTTP/1.1\r\n${headers.join('')}\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), body])
}

/** Every value of a header, in order. */
export function headersOf(answer: Answer, name: string): string[] {
  return answer.headers.flatMap(([key, value]) =>
    key.toLowerCase() === name.toLowerCase() ? [value] : [],
  )
}

/** The one value of a header; `undefined` where there is none. Throws where there are several. */
export function headerOf(answer: Answer, name: string): string | undefined {
  const values = headersOf(answer, name)
  if (values.length > 1) throw new Error(`${name} came ${values.length} times`)
  return values[0]
}

/** The answer's body as JSON. */
export function jsonOf(answer: Answer): Record<string, unknown> {
  return JSON.parse(answer.body.toString()) as Record<string, unknown>
}

/** Opens a connection to `port` of this machine; `from` is the address that it comes from. */
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

interface Waiting {
  readonly isHead: boolean
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** How the other side ended the connection: in order, or by a reset. */
export type End = 'end' | 'reset'

/** One connection; answers are taken in the order they come. */
export class RawConnection {
  /** Resolves when the other side has ended the connection. */
  readonly ended: Promise<End>
  readonly socket: Socket
  #rest: Buffer = Buffer.alloc(0)
  #end: End | undefined
  readonly #waiting: Waiting[] = []

  constructor(socket: Socket) {
    this.socket = socket
    this.ended = new Promise((resolve) => {
      const finish = (how: End) => {
        this.#end ??= how
        this.#deliver()
        resolve(this.#end)
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

  /** Bytes that came and belong to no answer taken yet. */
  get rest(): Buffer {
    return this.#rest
  }

  /** Whether the other side has ended it. */
  get isEnded(): boolean {
    return this.#end !== undefined
  }

  /** Sends bytes as they are; text is latin1. */
  send(bytes: string | Buffer): void {
    if (!this.socket.destroyed) this.socket.write(bytes, 'latin1')
  }

  /** The next answer. Throws where none comes in time, or the connection ends before. */
  answer({ isHead = false, msMax = ANSWER_MS_MAX }: Await = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.close()
        reject(new Error(`no answer within ${msMax} ms`))
      }, msMax)
      this.#waiting.push({ isHead, resolve, reject, timer })
      this.#deliver()
    })
  }

  /** Sends a request and takes its answer. */
  exchange(ask: Ask, msMax = ANSWER_MS_MAX): Promise<Answer> {
    this.send(requestBytes(ask))
    return this.answer({ isHead: ask.method === 'HEAD', msMax })
  }

  /** Ends the connection at once. */
  close(): void {
    this.socket.destroy()
  }

  #deliver(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      let parsed: { answer: Answer; length: number } | undefined
      try {
        parsed = parseAnswer(this.#rest, next.isHead)
      } catch (error) {
        this.#fail(next, error as Error)
        continue
      }
      if (parsed === undefined) {
        if (this.#end === undefined) return
        this.#fail(next, new Error(`the connection was closed (${this.#end}) without an answer`))
        continue
      }
      this.#rest = this.#rest.subarray(parsed.length)
      this.#waiting.shift()
      clearTimeout(next.timer)
      next.resolve(parsed.answer)
    }
  }

  #fail(waiting: Waiting, error: Error): void {
    this.#waiting.shift()
    clearTimeout(waiting.timer)
    waiting.reject(error)
  }
}

/** The first answer in `bytes`; `undefined` where it is not whole yet. Throws at other bytes. */
function parseAnswer(
  bytes: Buffer,
  isHead: boolean,
): { answer: Answer; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [first = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n')
  const matched = /^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(first)
  if (matched === null) throw new Error(`this is no status line: ${JSON.stringify(first)}`)
  const status = Number(matched[1])
  const headers = lines.map(parseHeader)
  const answer = { status, headers, body: Buffer.alloc(0) }
  const begin = headEnd + 4
  if (isHead || status < 200 || status === 204 || status === 304) return { answer, length: begin }
  const length = headerOf(answer, 'Content-Length')
  if (length === undefined) throw new Error(`an answer ${status} without Content-Length`)
  const end = begin + Number(length)
  if (bytes.length < end) return undefined
  return { answer: { ...answer, body: Buffer.from(bytes.subarray(begin, end)) }, length: end }
}

function parseHeader(line: string): readonly [string, string] {
  const matched = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/.exec(
    line,
  )
  if (matched === null) throw new Error(`this is no header: ${JSON.stringify(line)}`)
  return [matched[1] ?? '', matched[2] ?? '']
}
