// A fake Kubernetes API server: real HTTP on 127.0.0.1, paginated lists, watches with bookmarks,
// and every fault that a watcher must tolerate. It validates no schema and runs no Job.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { freePort } from '../../dependencies/free-ports.ts'
import {
  FakeKubeStore,
  type FakeObject,
  FakeApiError,
  hasFields,
  hasLabels,
} from './fake-kube-store.ts'
import { FakeKubeWatches } from './fake-kube-watches.ts'

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

interface Operation {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly contentType: string
  readonly body: string
}

/** The objects of a list that were not in its pages so far. */
interface ListRest {
  readonly version: number
  readonly objects: readonly FakeObject[]
}

const BOOKMARK_MS = 100

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
  /** Kinds, by their plural, whose CRD does not exist. */
  readonly missingKinds = new Set<string>()
  readonly watches = new FakeKubeWatches(this.store)
  port = 0
  readonly #rests = new Map<string, ListRest>()
  #server: Server | undefined
  #timer: NodeJS.Timeout | undefined

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}`
  }

  async start(): Promise<void> {
    if (this.port === 0) this.port = await freePort()
    const server = createServer((req, res) => {
      void this.#respond(req, res)
    })
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.on('error', reject)
      server.listen(this.port, '127.0.0.1', resolve)
    })
    this.#timer = setInterval(() => {
      this.watches.bookmark()
    }, BOOKMARK_MS)
  }

  /** Stops the server and destroys all its connections; the objects stay. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const server = this.#server
    this.#server = undefined
    server?.closeAllConnections()
    await new Promise<void>((resolve) => {
      if (server === undefined) resolve()
      else
        server.close(() => {
          resolve()
        })
    })
  }

  /** Destroys every connection. */
  dropConnections(): void {
    this.#server?.closeAllConnections()
  }

  /** Compacts the history, and reports 410 Expired to every watch. */
  expire(): void {
    this.store.compact()
    this.watches.expire()
  }

  async #respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(req.url ?? '/', this.url)
    const method = req.method ?? 'GET'
    const contentType = req.headers['content-type'] ?? ''
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
      if (path.split('/').some((segment) => this.missingKinds.has(segment))) {
        record(404)
        res.writeHead(404, { 'Content-Type': 'text/plain' }).end('404 page not found\n')
        return
      }
      const body = await bodyOf(req)
      if (method === 'GET' && query.get('watch') === 'true') {
        record(200)
        this.watches.open(res, path, query)
        return
      }
      if (method === 'GET' && this.holdLists !== undefined && isList(path)) {
        this.listsHeld++
        await this.holdLists
      }
      const result = this.#operate({ method, path, query, contentType, body })
      record(method === 'POST' ? 201 : 200)
      send(res, method === 'POST' ? 201 : 200, result)
    } catch (error) {
      if (!(error instanceof FakeApiError)) throw error
      record(error.code)
      const { code, reason, message } = error
      send(res, code, { kind: 'Status', code, reason, message })
    }
  }

  #operate(call: Operation): unknown {
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
    const change = { metadata: resourceVersion === undefined ? {} : { resourceVersion }, status }
    return call.contentType.startsWith('application/apply-patch')
      ? this.store.apply(collection, name, change)
      : this.store.patch(collection, name, change)
  }

  #list(path: string, query: URLSearchParams): unknown {
    const token = query.get('continue')
    const { version, objects } = token === null ? this.#select(path, query) : this.#restOf(token)
    const limit = Number(query.get('limit') ?? Infinity)
    const rest = objects.slice(limit)
    const next = rest.length === 0 ? '' : String(this.#rests.size + 1)
    if (next !== '') this.#rests.set(next, { version, objects: rest })
    const metadata = { resourceVersion: String(version), ...(next !== '' && { continue: next }) }
    return { items: objects.slice(0, limit), metadata }
  }

  /** All objects that a list selects, at the current version. */
  #select(path: string, query: URLSearchParams): ListRest {
    const objects = this.store
      .list(path)
      .filter(hasLabels(query.get('labelSelector') ?? ''))
      .filter(hasFields(query.get('fieldSelector') ?? ''))
    return { version: this.store.version, objects }
  }

  #restOf(token: string): ListRest {
    const rest = this.#rests.get(token)
    if (rest === undefined) throw new FakeApiError(400, 'BadRequest')
    if (rest.version < this.store.compactedVersion) throw new FakeApiError(410, 'Expired')
    return rest
  }
}

/** Starts a server. */
export async function startFakeKubeApi(): Promise<FakeKubeApi> {
  const api = new FakeKubeApi()
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
