// Operator lists, the pods that mount them, and their kubelet, without HTTP and on a simulated
// clock. The kubelet updates the files of a pod when the pod changes, from a view of the objects
// that is behind.
import { createListController } from '../../../src/kube/list-sync/list-controller.ts'
import type { ListObject } from '../../../src/kube/list-sync/watch-lists.ts'
import type { KubeApi } from '../../../src/kube/api.ts'
import { fence } from '../../../src/kube/fence.ts'
import { KubeError } from '../../../src/kube/kube-error.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { createFakeScheduler } from '../fake-scheduler.ts'
import { FakeApiError, FakeKubeStore, hasFields, hasLabels } from './fake-kube-store.ts'
import { quietLog } from './kube-watcher.ts'

type Call = Parameters<KubeApi['call']>[0]
type Lines = Parameters<KubeApi['lines']>[0]

/** The collections of the objects. */
export const PATHS = {
  pods: '/api/v1/namespaces/n/pods',
  secrets: '/api/v1/namespaces/n/secrets',
  configmaps: '/api/v1/namespaces/n/configmaps',
} as const

/** The annotation of the pods. */
export const ANNOTATION = 'curtail.dev/lists'
/** The lists that each pod mounts. */
export const OBJECTS = [
  { plural: 'secrets', name: 'keys' },
  { plural: 'configmaps', name: 'blocked' },
] as const satisfies readonly ListObject[]
const KUBELET_LAG_MS = 1400
const LABELS = { app: 'curtail' }

/** A replica of the controller. */
export interface Replica {
  /** Stops it gracefully. */
  readonly stop: () => Promise<void>
  /** Its writes are rejected from now on, as those of a process that lost the Lease. */
  readonly loseLease: () => void
}

/** The state, and what tests do with it. */
export interface ListWorld {
  readonly store: FakeKubeStore
  readonly metrics: ReturnType<typeof createMetrics>
  readonly calls: Call[]
  readonly watches: Lines[]
  /** The fields and the message of each. */
  readonly warnings: object[]
  /** How far the kubelet's view of the lists is behind. */
  kubeletLagMs: number
  /** Called before each call and watch is processed; may wait, or throw KubeError. */
  intercept: (call: Call | Lines) => Promise<void>
  readonly advance: (ms: number) => Promise<void>
  readonly nowMs: () => number
  readonly createPod: (name: string) => void
  /** Changes a list. */
  readonly change: (object?: ListObject) => void
  /** Starts a replica that leads. */
  readonly lead: () => Replica
  /** Patches of a pod, as their values. */
  readonly patchesOf: (pod: string) => readonly string[]
  /** Pods whose files are not those of the current objects. */
  readonly outdated: () => readonly string[]
}

/** Creates the lists, and pods that mount their current state. */
export function createListWorld(pods: readonly string[]): ListWorld {
  const store = new FakeKubeStore()
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const [calls, watches, warnings]: [Call[], Lines[], object[]] = [[], [], []]
  const patches: { pod: string; value: string }[] = []
  let edits = 0
  for (const { plural, name } of OBJECTS) store.create(PATHS[plural], { metadata: { name } })
  const lagMs = () => world.kubeletLagMs
  const kubelet = createKubelet(store, { nowMs: scheduler.nowMs, lagMs })
  store.listen(({ type, collection, object }) => {
    if (collection === PATHS.pods && type === 'MODIFIED')
      patches.push({
        pod: object.metadata.name,
        value: object.metadata.annotations?.[ANNOTATION] ?? '',
      })
  })
  const createPod = (name: string) => {
    store.create(PATHS.pods, { metadata: { name, labels: LABELS } })
  }
  const warn = (fields: object, message: string) => warnings.push({ ...fields, message })
  const world: ListWorld = {
    ...{ store, metrics, calls, watches, warnings, createPod },
    kubeletLagMs: KUBELET_LAG_MS,
    intercept: () => Promise.resolve(),
    advance: scheduler.advance,
    nowMs: scheduler.nowMs,
    change({ plural, name } = OBJECTS[1]) {
      store.patch(PATHS[plural], name, { data: { list: String(++edits) } })
    },
    lead() {
      const stopping = new AbortController()
      let isLeading = true
      const controller = createListController({
        ...{ objects: OBJECTS, podSelector: 'app=curtail', namespace: 'n' },
        api: fence(() => isLeading, openApi(world)),
        ...{ scheduler, random: () => 0, metrics },
        log: { ...quietLog, warn } as never,
        onState: () => undefined,
      })
      const leading = controller.lead(stopping.signal)
      return {
        async stop() {
          stopping.abort()
          await leading
        },
        loseLease() {
          isLeading = false
        },
      }
    },
    patchesOf: (name) => patches.filter(({ pod }) => pod === name).map(({ value }) => value),
    outdated: kubelet.outdated,
  }
  for (const pod of pods) createPod(pod)
  return world
}

/** The versions of the objects that each pod has mounted. */
function createKubelet(
  store: FakeKubeStore,
  { nowMs, lagMs }: { readonly nowMs: () => number; readonly lagMs: () => number },
) {
  const versions: { readonly atMs: number; readonly version: string }[] = []
  const mounted = new Map<string, string>()
  const current = () =>
    OBJECTS.map(({ plural, name }) => store.get(PATHS[plural], name)?.metadata.resourceVersion)
      .map(String)
      .join()
  const visible = () =>
    versions.findLast(({ atMs }) => atMs <= nowMs() - lagMs())?.version ??
    versions[0]?.version ??
    ''
  versions.push({ atMs: nowMs(), version: current() })
  store.listen(({ type, collection, object }) => {
    const { name } = object.metadata
    if (collection !== PATHS.pods) versions.push({ atMs: nowMs(), version: current() })
    else if (type === 'DELETED') mounted.delete(name)
    else mounted.set(name, visible())
  })
  return {
    outdated: () =>
      [...mounted].filter(([, version]) => version !== current()).map(([name]) => name),
  }
}

/** The API server, with the faults of the test. */
function openApi(world: ListWorld): KubeApi {
  const { store } = world
  return {
    async call(call) {
      world.calls.push(call)
      await world.intercept(call)
      if (call.signal?.aborted === true)
        throw new KubeError('aborted', { status: 0, reason: 'Unreachable' })
      const { method, path, query = {}, body } = call
      if (method === 'GET') {
        const items = store.list(path).filter(selectedBy(query))
        return { items, metadata: { resourceVersion: String(store.version) } }
      }
      const at = path.lastIndexOf('/')
      try {
        return store.patch(path.slice(0, at), path.slice(at + 1), body as Record<string, unknown>)
      } catch (error) {
        if (!(error instanceof FakeApiError)) throw error
        throw new KubeError(error.message, { status: error.code, reason: error.reason })
      }
    },
    async *lines(call) {
      world.watches.push(call)
      await world.intercept(call)
      call.onOpen?.()
      yield* eventsOf(store, call)
    },
  }
}

async function* eventsOf(
  store: FakeKubeStore,
  { path, query, signal }: Lines,
): AsyncGenerator<string, void> {
  let version = Number(query['resourceVersion'])
  while (!signal.aborted) {
    for (const event of store.history.filter((one) => one.version > version)) {
      version = event.version
      if (event.collection === path && selectedBy(query)(event.object)) yield JSON.stringify(event)
    }
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const onEvent = () => {
      resolve(undefined)
    }
    const remove = store.listen(onEvent)
    signal.addEventListener('abort', onEvent)
    await promise
    remove()
  }
}

function selectedBy({ labelSelector, fieldSelector }: Readonly<Record<string, string>>) {
  const all = [hasLabels(labelSelector ?? ''), hasFields(fieldSelector ?? '')]
  return (object: Parameters<ReturnType<typeof hasLabels>>[0]) => all.every((has) => has(object))
}
