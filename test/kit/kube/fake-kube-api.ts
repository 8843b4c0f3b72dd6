// A fake Kubernetes API server: real HTTP on 127.0.0.1, paginated lists, watches with bookmarks,
// and every fault that a watcher must tolerate. It validates no schema and runs no Job.
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

/** A received request. */
export interface FakeCall {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly status: number
  /** The port of the client. */
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

/** A server and its objects. */
export class FakeKubeApi {
  readonly store = new FakeKubeStore()
  readonly calls: FakeCall[] = []
  /** Called with every request; a fault that it returns is the response. */
  reject: (call: {
    method: string
    path: string
    query: URLSearchParams
  }) => FakeFault | undefined = () => undefined
  /** Lists wait for this promise. */
  holdLists: Promise<void> | undefined
  /** The number of lists that have waited so far. */
  listsHeld = 0
  /** How the next event is delivered to each watch. */
  nextDelivery: 'complete' | 'truncated' | 'duplicate' = 'complete'
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

  /** The number of open watches of a collection. */
  watchesOf(collection: string): number {
    return [...this.#watches].filter((watch) => watch.collection === collection).length
  }

  async start(): Promise<void> {
    const server = createServer((req, res) => {
      void this.#respond(req, res)
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

  /** Stops the server and destroys all its connections; the objects stay. */
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

  /** Stops sending to the open watches, as on a half-open connection. */
  silenceWatches(): void {
    for (const watch of this.#watches) watch.isSilent = true
  }

  /** Destroys every connection. */
  dropConnections(): void {
    this.#server?.closeAllConnections()
  }

  /** Closes every watch gracefully, like a server at its watch timeout. */
  closeWatches(): void {
    for (const { res } of this.#watches) res.end()
    this.#watches.clear()
  }

  /** Compacts the history, and reports 410 Expired to every watch. */
  expire(): void {
    this.store.compact()
    const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' }
    for (const { res } of this.#watches) {
      res.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
    }
    this.#watches.clear()
  }

  async #respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(req.url ?? '/', this.url)
    const method = req.method ?? 'GET'
    const record = (status: number) => {
      this.calls.push({ method, path, query, status, port: req.socket.remotePort ?? 0 })
    }
    try {
      const fault = this.reject({ method, path, query })
      if (fault !== undefined) {
        record(fault.status)
        rejectWith(res, fault)
        return
      }
      const body = await bodyOf(req)
      if (method === 'GET' && query.get('watch') === 'true') {
        record(200)
        this.#watch(path, query, res)
        return
      }
      if (method === 'GET' && this.holdLists !== undefined && isList(path)) {
        this.listsHeld++
        await this.holdLists
      }
      const result = this.#operate({ method, path, query, body })
      record(method === 'POST' ? 201 : 200)
      send(res, method === 'POST' ? 201 : 200, result)
    } catch (error) {
      if (!(error instanceof FakeApiError)) throw error
      record(error.code)
      const { code, reason, message } = error
      send(res, code, { kind: 'Status', code, reason, message })
    }
  }

  #operate(call: { method: string; path: string; query: URLSearchParams; body: string }): unknown {
    const { method, path, query } = call
    const body = () => JSON.parse(call.body) as Record<string, unknown>
    if (method === 'GET' && isList(path)) return this.#list(path, query)
    if (method === 'POST') return this.store.create(path, body())
    const { collection, name, subresource } = splitPath(path)
    if (method === 'GET') return found(this.store.get(collection, name))
    if (method === 'DELETE') return this.store.remove(collection, name)
    if (method === 'PUT') return this.store.replace(collection, name, body())
    if (subresource !== 'status') return this.store.patch(collection, name, body())
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
      .filter((field) => field !== '')
    if (Number(version) < this.store.compactedVersion) throw new FakeApiError(410, 'Expired')
    const end = Number(from) + limit
    const more = end < all.length ? { continue: `${end}@${version}` } : {}
    return { items: all.slice(Number(from), end), metadata: { resourceVersion: version, ...more } }
  }

  #watch(collection: string, query: URLSearchParams, res: ServerResponse): void {
    const from = Number(query.get('resourceVersion'))
    res.writeHead(200, { 'Content-Type': 'application/json' })
    res.flushHeaders()
    if (from < this.store.compactedVersion) {
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
    const delivery = this.nextDelivery
    this.nextDelivery = 'complete'
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
      if (delivery === 'duplicate') this.#write(watch, event)
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

/** Starts a server. */
export async function startFakeKubeApi(given: { bookmarkMs?: number } = {}): Promise<FakeKubeApi> {
  const api = new FakeKubeApi()
  api.bookmarkMs = given.bookmarkMs ?? BOOKMARK_MS
  await api.start()
  return api
}

/** Whether a path is `/api/v1/namespaces/n/plural` or `/apis/group/version/namespaces/n/plural`. */
function isList(path: string): boolean {
  return /^\/(api\/[^/]+|apis\/[^/]+\/[^/]+)\/namespaces\/[^/]+\/[^/]+$/.test(path)
}

function splitPath(path: string) {
  const segments = path.split('/')
  const at = segments.indexOf('namespaces')
  const [name = '', subresource] = segments.slice(at + 3)
  const collection = segments.slice(0, at + 3).join('/')
  return { collection, name: decodeURIComponent(name), subresource }
}

function found(object: FakeObject | undefined): FakeObject {
  if (object === undefined) throw new FakeApiError(404, 'NotFound')
  return object
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of req) body += String(chunk)
  return body
}

function send(res: ServerResponse, status: number, document: unknown): void {
  res.writeHead(status, { 'Content-Type': 'application/json' })
  res.end(JSON.stringify(document))
}

function rejectWith(res: ServerResponse, { status, reason, retryAfterSeconds }: FakeFault): void {
  if (retryAfterSeconds !== undefined) res.setHeader('Retry-After', String(retryAfterSeconds))
  send(res, status, { kind: 'Status', code: status, reason, message: reason })
}
