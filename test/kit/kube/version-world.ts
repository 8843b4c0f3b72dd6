// The Secret with the last version of the rules, its API server, and leaders that store versions in
// it and send them. The API server is a function, and time is simulated.
import { gunzipSync } from 'node:zlib'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import type { KubeApi } from '../../../src/kube/api.ts'
import { KubeError } from '../../../src/kube/kube-error.ts'
import type { CompiledVersion } from '../../../src/kube/rate-limit-policy/rules-port.ts'
import {
  createVersionSender,
  type SendVersionsDeps,
} from '../../../src/kube/rate-limit-policy/send-versions.ts'
import { runWorkers } from '../../../src/kube/run-workers.ts'
import { createWorkQueue } from '../../../src/kube/work-queue.ts'
import { createFakeScheduler, type FakeScheduler } from '../fake-scheduler.ts'

/** The Secret. */
export const SECRET = { namespace: 'n', name: 'versions' }
/** The key of the version in the Secret. */
export const VERSION_KEY = 'version.pb.gz'
const PATH = `/api/v1/namespaces/${SECRET.namespace}/secrets/${SECRET.name}`
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined }
/** Drops every line. */
export const QUIET_LOG = { ...quiet, error: () => undefined }

/** A version whose resources are its name. */
export const versionOf = (version: string, bytes = Buffer.from(version)): CompiledVersion => ({
  version,
  resources: [bytes],
})

interface Patch {
  readonly metadata: { resourceVersion: string; annotations: Readonly<Record<string, string>> }
  readonly data: Readonly<Record<string, string>>
}

/** What happens to a call, and how long it takes. */
export type Fate = () => { readonly ms: number; readonly fault?: 'before' | 'after' }

/** A Secret and its API server; `on` observes the calls. */
function startServer(
  scheduler: FakeScheduler,
  fate: Fate,
  on: { readonly onStart: (method: string) => void; readonly onEnd: () => void },
) {
  let secret: { metadata: object; data?: Readonly<Record<string, string>> } | undefined = {
    metadata: { resourceVersion: '1' },
  }
  let revision = 1
  /** Every version that was stored. */
  const history: string[] = []
  const decode = (data: Readonly<Record<string, string>>) =>
    gunzipSync(Buffer.from(data[VERSION_KEY] ?? '', 'base64')).toString()
  const operate = ({ method, body }: { method: string; body?: unknown }) => {
    if (secret === undefined) throw new KubeError('none', { status: 404, reason: 'NotFound' })
    if (method === 'GET') return secret
    const { metadata, data } = body as Patch
    if (metadata.resourceVersion !== String(revision))
      throw new KubeError('changed', { status: 409, reason: 'Conflict' })
    revision++
    secret = { metadata: { ...metadata, resourceVersion: String(revision) }, data }
    history.push(decode(data))
    return secret
  }
  const lost = () => new KubeError('lost', { status: 0, reason: 'Unreachable' })
  const api: Pick<KubeApi, 'call'> = {
    async call(call) {
      const { method, path } = call
      if (path !== PATH) throw new Error(path)
      on.onStart(method)
      try {
        const { ms, fault } = fate()
        await new Promise<void>((resolve) => scheduler.after(ms, resolve))
        if (fault === 'before') throw lost()
        const result = operate(call)
        if (fault === 'after') throw lost()
        return result
      } finally {
        on.onEnd()
      }
    },
  }
  return {
    ...{ api, history },
    stored: () => secret?.data && decode(secret.data),
    annotation: () => (secret?.metadata as Partial<Patch['metadata']>).annotations,
    remove: () => (secret = undefined),
    /** Changes the Secret, but nothing that the leader stores. */
    touch: () => {
      const resourceVersion = String(++revision)
      if (secret !== undefined) secret = { ...secret, metadata: { resourceVersion } }
    },
    restore: (data?: Readonly<Record<string, string>>) =>
      (secret = { metadata: { resourceVersion: String(revision) }, ...(data && { data }) }),
  }
}

const COMPRESSION_MS_MAX = 20_000

/** Waits in real time while a write is not in a call: another thread compresses its version. */
async function untilCompressed(running: { writes: number; calls: number }): Promise<void> {
  const untilMs = performance.now() + COMPRESSION_MS_MAX
  while (running.writes > running.calls) {
    if (performance.now() > untilMs) throw new Error('a version was not compressed in 20 s')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** Starts it with a Secret that is empty; time advances in steps of `stepMs`. */
export function startVersionWorld(fate: Fate = () => ({ ms: 0 }), stepMs = 500) {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const calls: { method: string; atMs: number }[] = []
  /** The numbers of writes and calls that are in progress. */
  const running = { writes: 0, calls: 0 }
  const server = startServer(scheduler, fate, {
    onStart(method) {
      calls.push({ method, atMs: scheduler.nowMs() })
      running.calls++
    },
    onEnd: () => running.calls--,
  })
  /** The versions that limiters receive, with the version that is stored then. */
  const sent: { readonly version: string; readonly atMs: number; stored?: string | undefined }[] =
    []
  const startLeader = (given: Partial<SendVersionsDeps> = {}) => {
    const queue = createWorkQueue({ name: 'q', scheduler, metrics })
    const crashing = new AbortController()
    const serialize = ({ resources }: CompiledVersion) => Promise.resolve(Buffer.concat(resources))
    const sender = createVersionSender({
      api: server.api,
      store: { secret: SECRET, serialize },
      port: {
        publish: ({ version }) =>
          sent.push({ version, atMs: scheduler.nowMs(), stored: server.stored() }),
      },
      isLeading: () => true,
      enqueue: (ms) => {
        queue.addAfter('version', ms)
      },
      ...{ scheduler, random: () => 0.5, metrics, log: QUIET_LOG },
      ...given,
    })
    const reconcile = async (_key: string, signal: AbortSignal) => {
      running.writes++
      try {
        return (await sender.write?.(signal)) ?? {}
      } finally {
        running.writes--
      }
    }
    const options = { name: 'q', queue, workers: 1, reconcile, scheduler, metrics, log: QUIET_LOG }
    void runWorkers(options, crashing.signal)
    const crash = () => {
      crashing.abort()
      queue.shutDown()
      sender.stop()
    }
    return { ...sender, crash }
  }
  const advance = async (ms: number) => {
    for (let left = ms; left > 0; left -= stepMs) {
      await scheduler.advance(Math.min(left, stepMs))
      await untilCompressed(running)
    }
  }
  const failures = async () => {
    const { values } = await metrics.backgroundFailures.get()
    return values.find(({ labels }) => labels.task === 'store-version')?.value ?? 0
  }
  return {
    ...server,
    ...{ scheduler, metrics, calls, sent, startLeader, advance, failures },
    writes: () => calls.filter(({ method }) => method === 'PATCH'),
  }
}
