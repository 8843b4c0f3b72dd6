// A Kubernetes API server for tests: real HTTP on 127.0.0.1, lists in pages, watches with
// bookmarks, and every fault that a watcher must tolerate. It checks no schema and runs no Job.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type FakeEvent,
  FakeKubeStore,
  type FakeObject,
  FakeApiError,
  hasFields,
  hasLabels,
} from './fake-kube-store.ts'

/** A call that was made. */
export interface FakeCall {
  readonly method: string
  /** Without its query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly status: number
  /** The client's port. */
  readonly port: number
}

/** An error response. */
export interface FakeFault {
  readonly status: number
  readonly reason: string
  readonly retryAfterSeconds?: number
}

interface Watch {
  readonly res: ServerResponse
  readonly collection: string
  readonly selector: string
  isSilent: boolean
}

const BOOKMARK_MS = 100
const PAGE_MAX = 500

/** A running server. */
export class FakeKubeApi {
  readonly store = new FakeKubeStore()
  readonly calls: FakeCall[] = []
  /** Called before every request; the fault that it returns is the response. */
  reject: (call: {
    method: string
    path: string
    query: URLSearchParams
  }) => FakeFault | undefined = () => undefined
  /** Lists wait for it. */
  holdLists: Promise<void> | undefined
  /** Number of lists that have waited so far. */
  listsHeld = 0
  /** How the next event is written to each watch. */
  nextEvent: 'whole' | 'truncated' | 'twice' = 'whole'
  bookmarkMs = BOOKMARK_MS
  port = 0
  readonly #watches = new Set<Watch>()
  #server: Server | undefined
  #timer: NodeJS.Timeout | undefined

  constructor() {
    this.store.listen((event) => {
      this.#send(event)
    })
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}`
  }

  get watches(): number {
    return this.#watches.size
  }

  /** Watches that are open now, by collection. */
  watchesOf(collection: string): number {
    return [...this.#watches].filter((watch) => watch.collection === collection).length
  }

  async start(): Promise<void> {
    const server = createServer((req, res) => {
      void this.#answer(req, res)
    })
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.on('error', reject)
      server.listen(this.port, '127.0.0.1', resolve)
    })
    this.port = (server.address() as AddressInfo).port
    this.#timer = setInterval(() => {
      for (const watch of this.#watches) this.#bookmark(watch)
    }, this.bookmarkMs)
  }

  /** Stops it and destroys all its connections; the objects stay. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const server = this.#server
    this.#server = undefined
    this.#watches.clear()
    server?.closeAllConnections()
    await new Promise<void>((resolve) => {
      if (server === undefined) resolve()
      else
        server.close(() => {
          resolve()
        })
    })
  }

  /** The watches that are open now stay open, and receive no more events. */
  silence(): void {
    for (const watch of this.#watches) watch.isSilent = true
  }

  /** Destroys every connection. */
  dropConnections(): void {
    this.#server?.closeAllConnections()
  }

  /** Closes every watch gracefully, like a server after its watch time-out. */
  endWatches(): void {
    for (const { res } of this.#watches) res.end()
    this.#watches.clear()
  }

  /** Compacts the history, and reports 410 Expired to every watch. */
  expire(): void {
    this.store.forget()
    const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' }
    for (const { res } of this.#watches) {
      res.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
    }
    this.#watches.clear()
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(req.url ?? '/', this.url)
    const method = req.method ?? 'GET'
    const note = (status: number) => {
      this.calls.push({ method, path, query, status, port: req.socket.remotePort ?? 0 })
    }
    try {
      const fault = this.reject({ method, path, query })
      if (fault !== undefined) {
        note(fault.status)
        rejectWith(res, fault)
        return
      }
      const body = await bodyOf(req)
      if (method === 'GET' && query.get('watch') === 'true') {
        note(200)
        this.#watch(path, query, res)
        return
      }
      if (method === 'GET' && this.holdLists !== undefined && isList(path)) {
        this.listsHeld++
        await this.holdLists
      }
      const answer = this.#operate({ method, path, query, body })
      note(method === 'POST' ? 201 : 200)
      send(res, method === 'POST' ? 201 : 200, answer)
    } catch (error) {
      if (!(error instanceof FakeApiError)) throw error
      note(error.code)
      const { code, reason, message } = error
      send(res, code, { kind: 'Status', code, reason, message })
    }
  }

  #operate(call: { method: string; path: string; query: URLSearchParams; body: string }): unknown {
    const { method, path, query } = call
    const body = () => JSON.parse(call.body) as Record<string, unknown>
    if (method === 'GET' && isList(path)) return this.#list(path, query)
    if (method === 'POST') return this.store.create(path, body())
    const { collection, name, part } = splitPath(path)
    if (method === 'GET') return found(this.store.get(collection, name))
    if (method === 'DELETE') return this.store.remove(collection, name)
    if (method === 'PUT') return this.store.replace(collection, name, body())
    if (part !== 'status') return this.store.patch(collection, name, body())
    const { status, metadata } = body()
    const { resourceVersion } = (metadata ?? {}) as { resourceVersion?: string }
    const at = resourceVersion === undefined ? {} : { metadata: { resourceVersion } }
    return this.store.patch(collection, name, { ...at, status })
  }

  #list(path: string, query: URLSearchParams): unknown {
    const all = this.store
      .list(path)
      .filter(hasLabels(query.get('labelSelector') ?? ''))
      .filter(hasFields(query.get('fieldSelector') ?? ''))
    const limit = Math.min(
      Number(query.get('limit') ?? Infinity),
      query.has('limit') ? PAGE_MAX : Infinity,
    )
    const [from = '0', version = String(this.store.version)] = (query.get('continue') ?? '')
      .split('@')
      .filter((text) => text !== '')
    if (Number(version) < this.store.forgotten) throw new FakeApiError(410, 'Expired')
    const end = Number(from) + limit
    const more = end < all.length ? { continue: `${end}@${version}` } : {}
    return { items: all.slice(Number(from), end), metadata: { resourceVersion: version, ...more } }
  }

  #watch(collection: string, query: URLSearchParams, res: ServerResponse): void {
    const from = Number(query.get('resourceVersion'))
    res.writeHead(200, { 'Content-Type': 'application/json' })
    res.flushHeaders()
    if (from < this.store.forgotten) {
      const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' }
      res.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
      return
    }
    const selector = query.get('labelSelector') ?? ''
    const watch: Watch = { res, collection, selector, isSilent: false }
    for (const event of this.store.history) {
      if (event.version > from) this.#write(watch, event)
    }
    this.#watches.add(watch)
    res.on('close', () => this.#watches.delete(watch))
  }

  #send(event: FakeEvent): void {
    const delivery = this.nextEvent
    this.nextEvent = 'whole'
    for (const watch of this.#watches) {
      if (watch.isSilent) continue
      if (delivery === 'truncated') {
        const line = JSON.stringify({ type: event.type, object: event.object })
        watch.res.write(line.slice(0, Math.floor(line.length / 2)))
        watch.res.socket?.end()
        watch.isSilent = true
        continue
      }
      this.#write(watch, event)
      if (delivery === 'twice') this.#write(watch, event)
    }
  }

  #write({ res, collection, selector }: Watch, { type, object, ...event }: FakeEvent): void {
    if (event.collection !== collection || !hasLabels(selector)(object)) return
    res.write(`${JSON.stringify({ type, object })}\n`)
  }

  #bookmark({ res, isSilent }: Watch): void {
    if (isSilent) return
    const object = { metadata: { resourceVersion: String(this.store.version) } }
    res.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`)
  }
}

/** Starts one. */
export async function startFakeKubeApi(given: { bookmarkMs?: number } = {}): Promise<FakeKubeApi> {
  const api = new FakeKubeApi()
  api.bookmarkMs = given.bookmarkMs ?? BOOKMARK_MS
  await api.start()
  return api
}

/** `/api/v1/namespaces/n/plural` or `/apis/group/version/namespaces/n/plural`. */
function isList(path: string): boolean {
  return /^\/(api\/[^/]+|apis\/[^/]+\/[^/]+)\/namespaces\/[^/]+\/[^/]+$/.test(path)
}

function splitPath(path: string): { collection: string; name: string; part: string | undefined } {
  const parts = path.split('/')
  const at = parts.indexOf('namespaces')
  const [name = '', part] = parts.slice(at + 3)
  return { collection: parts.slice(0, at + 3).join('/'), name: decodeURIComponent(name), part }
}

function found(object: FakeObject | undefined): FakeObject {
  if (object === undefined) throw new FakeApiError(404, 'NotFound')
  return object
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of req) text += String(piece)
  return text
}

function send(res: ServerResponse, status: number, document: unknown): void {
  res.writeHead(status, { 'Content-Type': 'application/json' })
  res.end(JSON.stringify(document))
}

function rejectWith(res: ServerResponse, { status, reason, retryAfterSeconds }: FakeFault): void {
  if (retryAfterSeconds !== undefined) res.setHeader('Retry-After', String(retryAfterSeconds))
  send(res, status, { kind: 'Status', code: status, reason, message: reason })
}
