// The controller of CodePools, with an API server that is a function and whose watches yield what
// the test pushes. Time is simulated.
import {
  createPoolController,
  type PoolControllerDeps,
} from '../../../src/kube/code-pool/pool-controller.ts'
import type { KubeApi } from '../../../src/kube/api.ts'
import { untilAborted } from '../../../src/kube/scheduler.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { createFakeScheduler } from '../fake-scheduler.ts'

type Call = Parameters<KubeApi['call']>[0]

const quiet = () => undefined
/** A CodePool in the namespace `n`. */
export const poolOf = (name: string, metadata: object = {}, more: object = {}) => ({
  metadata: {
    ...{ name, namespace: 'n', uid: `uid-${name}`, resourceVersion: '1', generation: 1 },
    ...metadata,
  },
  spec: {
    ...{ lowWater: 2000, target: 5000, paused: false },
    codeSecret: { name: 's', key: 'secret' },
  },
  ...more,
})

/** The lines of a watch, which the test pushes. */
function createFeed() {
  const lines: string[] = []
  let wake: () => void = quiet
  return {
    push(type: string, object: object) {
      lines.push(JSON.stringify({ type, object }))
      wake()
    },
    async *read(signal: AbortSignal): AsyncGenerator<string, void> {
      while (!signal.aborted) {
        yield* lines.splice(0)
        const { promise, resolve } = Promise.withResolvers<undefined>()
        wake = () => {
          resolve(undefined)
        }
        await Promise.race([promise, untilAborted(signal)])
      }
    },
  }
}

/** CodePools at the start, and other dependencies. */
export interface Given extends Partial<PoolControllerDeps> {
  readonly pools?: readonly object[]
  readonly firstRead?: Promise<void>
  /** The response to each call that is not a list of CodePools. */
  readonly respond?: (call: Call) => Promise<unknown>
}

/** Watches the namespace `n`; each write of a status is recorded as a reconcile. */
export function watchPools({
  pools = [poolOf('p'), poolOf('q')],
  firstRead,
  respond,
  ...given
}: Given) {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const feeds = { codepools: createFeed(), jobs: createFeed() }
  const [warnings, states]: [string[], string[]] = [[], []]
  let reconciled: string[] = []
  const listOf = (items: readonly object[]) => ({ items, metadata: { resourceVersion: '1' } })
  const api: KubeApi = {
    async call(call) {
      const { method, path, body } = call
      if (method === 'PATCH') {
        const { metadata } = body as ReturnType<typeof poolOf>
        reconciled.push(metadata.name)
        return { metadata: { ...metadata, uid: `uid-${metadata.name}` } } // the cached version
      }
      if (path.endsWith('/codepools')) return listOf(pools)
      return respond === undefined ? listOf([]) : respond(call)
    },
    lines({ path, signal, onOpen }) {
      onOpen?.()
      return feeds[path.endsWith('/jobs') ? 'jobs' : 'codepools'].read(signal)
    },
  }
  const warn = (first: object | string, message = '') =>
    warnings.push(typeof first === 'string' ? first : message)
  const controller = createPoolController({
    ...{ api, namespaces: ['n'], ownerPrefix: '', scheduler, metrics },
    log: { debug: quiet, info: quiet, warn, error: warn } as never,
    ...{ ownPool: () => Promise.resolve(true), wallMs: () => 0, random: () => 0.5 },
    template: () => ({ reason: 'TemplateMissing', message: '' }),
    levels: {
      get: () => ({
        ...{ kind: 'present', level: 5000, rate: 0 },
        ...{ owner: null, lowWater: 2000, target: 5000 },
      }),
      refresh: () => Promise.resolve(true),
      firstRead: firstRead ?? Promise.resolve(),
      start: () => ({ trigger: quiet, stop: () => Promise.resolve() }),
    },
    events: { emit: quiet, flush: () => Promise.resolve() },
    onState: (resource, failure) => states.push(`${resource} ${failure?.status ?? 'up'}`),
    ...given,
  })
  const stopping = new AbortController()
  const watching = controller.watch(stopping.signal)
  /** The CodePools that are reconciled within `ms`. */
  const take = async (ms = 0) => {
    await scheduler.advance(ms)
    const taken = reconciled.toSorted()
    reconciled = []
    return taken
  }
  return { controller, scheduler, metrics, stopping, watching, feeds, warnings, states, take }
}

/** Starts a leader; returns what it reconciles first, and a function that stops it. */
export async function leadPools(given: Given = {}) {
  const started = watchPools(given)
  const { controller, scheduler, stopping, take } = started
  await scheduler.advance(0)
  const leading = controller.lead(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await scheduler.advance(0)
    await Promise.all([leading, started.watching])
  }
  return { ...started, first: await take(), stop, leading }
}
