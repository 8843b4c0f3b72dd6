// What the contract of an API server does with it: operations on the CodePools of a namespace of
// its own, and watches that record their events.
import {
  CODE_POOLS,
  type CodePool,
  type CodePoolStatus,
} from '../../src/kube/code-pool/code-pool.ts'
import type { KubeApi } from '../../src/kube/api.ts'
import { type KubeObject, pathOf } from '../../src/kube/objects.ts'
import type { Closing } from './open-dependencies.ts'

/** An API server that serves CodePools, Jobs, Leases and Events. */
export interface OpenedKubeApi extends Closing {
  readonly api: KubeApi
  readonly createNamespace: (name: string) => Promise<void>
  /** Adds the kind of widgets, which is missing until then. */
  readonly serveWidgets: () => Promise<void>
  /** A version and a continue token of CodePools whose history is compacted. */
  readonly expired: { readonly version: string; readonly continue: string }
}

/** A page of a list. */
interface Page {
  readonly items: readonly CodePool[]
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string }
}

/** An event of a watch. */
interface WatchEvent {
  readonly type: string
  readonly object: CodePool & { readonly code?: number; readonly reason?: string }
}

/** An open watch. */
interface OpenWatch {
  /** The events so far. */
  readonly events: readonly WatchEvent[]
  /** The events so far, as `type name`. */
  readonly summary: () => string[]
  /** Resolves once the server closes the watch. */
  readonly closed: Promise<void>
  readonly stop: () => Promise<void>
}

type Query = Readonly<Record<string, string>>

/** The CodePools of one namespace. */
export interface PoolsUse {
  readonly api: KubeApi
  readonly namespace: string
  readonly create: (name: string, labels?: Readonly<Record<string, string>>) => Promise<CodePool>
  readonly get: (name: string) => Promise<CodePool>
  /** Applies a merge patch. */
  readonly change: (name: string, body: object) => Promise<CodePool>
  readonly remove: (name: string) => Promise<void>
  readonly list: (query?: Query) => Promise<Page>
  /** Resolves once the watch is open. */
  readonly watch: (query: Query) => Promise<OpenWatch>
}

const WATCH_MS_MAX = 20_000
let namespaces = 0

/** The names of objects. */
export function namesOf(objects: readonly KubeObject[]): string[] {
  return objects.map(({ metadata }) => metadata.name)
}

/** A status of a CodePool, with `more` fields. */
export function statusOf(more: CodePoolStatus = {}): CodePoolStatus {
  return { observedGeneration: 1, storeName: 's', refills: 1, ...more }
}

/** Creates a namespace without CodePools. */
export async function createPools({ api, createNamespace }: OpenedKubeApi): Promise<PoolsUse> {
  const namespace = `contract-${++namespaces}`
  await createNamespace(namespace)
  const collection = pathOf(CODE_POOLS, { namespace })
  const pathTo = (name: string) => pathOf(CODE_POOLS, { namespace, name })
  return {
    api,
    namespace,
    async create(name, labels = {}) {
      const { apiVersion, kind } = CODE_POOLS
      const codeSecret = { name: 'secret', key: 'secret' }
      const spec = { lowWater: 2000, target: 5000, paused: false, codeSecret }
      const body = { apiVersion, kind, metadata: { name, namespace, labels }, spec }
      return (await api.call({ method: 'POST', path: collection, body })) as CodePool
    },
    get: async (name) => (await api.call({ method: 'GET', path: pathTo(name) })) as CodePool,
    async change(name, body) {
      const contentType = 'application/merge-patch+json'
      const call = { method: 'PATCH', path: pathTo(name), body, contentType } as const
      return (await api.call(call)) as CodePool
    },
    async remove(name) {
      await api.call({ method: 'DELETE', path: pathTo(name) })
    },
    list: async (query = {}) =>
      (await api.call({ method: 'GET', path: collection, query })) as Page,
    watch: (query) => openWatch(api, collection, query),
  }
}

async function openWatch(api: KubeApi, path: string, query: Query): Promise<OpenWatch> {
  const stopping = new AbortController()
  const opening = Promise.withResolvers<undefined>()
  const events: WatchEvent[] = []
  const read = async () => {
    const lines = api.lines({
      path,
      query: { watch: 'true', ...query },
      idleMsMax: WATCH_MS_MAX,
      signal: stopping.signal,
      onOpen: () => {
        opening.resolve(undefined)
      },
    })
    for await (const line of lines) events.push(JSON.parse(line) as WatchEvent)
  }
  const closed = read()
  closed.catch(opening.reject)
  await opening.promise
  return {
    events,
    summary: () => events.map(({ type, object }) => `${type} ${object.metadata.name}`),
    closed,
    async stop() {
      stopping.abort()
      await closed.catch(() => undefined) // the abort is reported as an error
    },
  }
}
