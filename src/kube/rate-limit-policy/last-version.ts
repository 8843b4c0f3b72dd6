// Stores the newest compiled version in a Secret, from which limiters load their rules if they
// start while no controller is reachable, and the accepted specs that no status contains yet, for
// the next leader. A Secret, because rules can contain hashes of API keys.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { type BackOffBounds, createBackOff } from '../back-off.ts'
import { KubeError } from '../kube-error.ts'
import { type ObjectMeta, pathOf } from '../objects.ts'
import type { ReconcileResult } from '../run-workers.ts'
import { createDeadline, type Scheduler } from '../scheduler.ts'
import { decodeAccepted, encodeAccepted, type UnreportedSpec } from './accepted-specs.ts'
import type { CompiledVersion } from './rules-port.ts'

/** Dependencies. */
export interface LastVersionDeps {
  /** Rejects writes unless this replica leads. */
  readonly api: Pick<KubeApi, 'call'>
  /** The Secret; it must exist. */
  readonly secret: { readonly namespace: string; readonly name: string }
  /** The message that limiters would receive. */
  readonly serialize: (version: CompiledVersion) => Promise<Uint8Array>
  /** Calls `write` after `ms` milliseconds. */
  readonly enqueue: (ms: number) => void
  /** Called when a recorded version is stored, or when an attempt to store it has failed. */
  readonly onSettled: (version: CompiledVersion) => void
  readonly scheduler: Pick<Scheduler, 'nowMs'>
  readonly random: () => number
  readonly metrics: Pick<Metrics, 'backgroundFailures'>
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** The stored version of a leader. */
export interface LastVersion {
  /** Stores `version` with `accepted` as soon as the rate allows it, unless a newer one follows. */
  readonly record: (version: CompiledVersion, accepted: readonly UnreportedSpec[]) => void
  /**
   * Stores the newest version if the Secret contains another. To be repeated, because others can
   * change the Secret. Rejects on abort, or a defect.
   */
  readonly write: (signal: AbortSignal) => Promise<ReconcileResult>
}

/** The key of the gzipped version in the Secret. */
const DATA_KEY = 'version.pb.gz'
/** The key of the accepted specs. */
const ACCEPTED_KEY = 'accepted.json.gz'
/** The annotation with its name, for people. */
const ANNOTATION = 'curtail.dev/version'
const SECRETS = { group: '', version: 'v1', plural: 'secrets' } as const
/** Kubernetes' maximum for the data of a Secret. */
const STORED_BYTES_MAX = 1024 * 1024
/** The API server, its watchers and etcd receive at most this many bytes per second of us. */
const BYTES_PER_MS = 100
const CHECK_INTERVAL_MS = 600_000
const READ_MS_MAX = 5000
const RETRY_BACK_OFF: BackOffBounds = { initialMs: 1000, maxMs: 60_000, resetAfterMs: 120_000 }

const compress = promisify(gzip)

/** Creates it for a process that has just become the leader; it then reads the Secret once. */
export function createLastVersion(deps: LastVersionDeps): LastVersion {
  const { scheduler, log, metrics, enqueue, onSettled } = deps
  const secret = deps.secret.name
  const backOff = createBackOff(RETRY_BACK_OFF, deps)
  let newest: Stored | undefined
  /** The version that is stored, or too large; `undefined` during and after a failed write. */
  let settled: string | undefined
  let notBeforeMs = -Infinity
  let isFailing = false
  const recordFailure = (err: unknown) => {
    metrics.backgroundFailures.inc({ task: 'store-version' })
    if (!isFailing) log.warn({ err, secret }, 'last version not stored: retrying')
    isFailing = true
    notBeforeMs = scheduler.nowMs() + backOff.nextMs()
  }
  const recordOutcome = ({ outcome, bytes }: Outcome, version: string) => {
    settled = version
    isFailing = false
    if (outcome === 'written') {
      notBeforeMs = scheduler.nowMs() + bytes / BYTES_PER_MS
      log.info({ secret, version }, 'last version stored')
    } else if (outcome === 'too-large') {
      metrics.backgroundFailures.inc({ task: 'store-version' })
      log.warn({ secret, version }, `version not stored: more than ${STORED_BYTES_MAX} bytes`)
    }
  }
  return {
    record(version, accepted) {
      newest = { version, accepted }
      const isSettled = version.version === settled
      if (!isSettled) enqueue(0)
      if (isSettled || isFailing) onSettled(version)
    },
    async write(signal) {
      const stored = newest
      if (stored === undefined) return {}
      const waitMs = notBeforeMs - scheduler.nowMs()
      if (waitMs > 0) return { requeueAfterMs: waitMs }
      settled = undefined
      try {
        const result = await store(deps, stored, signal)
        recordOutcome(result, stored.version.version)
        return result.outcome === 'too-large' ? {} : { requeueAfterMs: CHECK_INTERVAL_MS }
      } catch (error) {
        if (signal.aborted || !(error instanceof KubeError)) throw error
        recordFailure(error)
        return { requeueAfterMs: notBeforeMs - scheduler.nowMs() }
      } finally {
        if (!signal.aborted) onSettled(stored.version)
      }
    },
  }
}

interface Stored {
  readonly version: CompiledVersion
  readonly accepted: readonly UnreportedSpec[]
}

interface Outcome {
  readonly outcome: 'written' | 'unchanged' | 'too-large'
  readonly bytes: number
}

interface StoredSecret {
  readonly metadata: ObjectMeta
  readonly data?: Readonly<Record<string, string>>
}

/** Replaces the stored version and the accepted specs if the version differs. Throws KubeError. */
async function store(
  { api, secret, serialize }: LastVersionDeps,
  { version, accepted }: Stored,
  signal: AbortSignal,
): Promise<Outcome> {
  const [packed, specs] = await Promise.all([
    serialize(version).then((message) => compress(message)),
    encodeAccepted(accepted),
  ])
  const bytes = packed.length
  if (bytes > STORED_BYTES_MAX) return { outcome: 'too-large', bytes }
  const path = pathOf(SECRETS, secret)
  const stored = (await api.call({ method: 'GET', path, signal })) as StoredSecret
  const encoded = packed.toString('base64')
  if (stored.data?.[DATA_KEY] === encoded) return { outcome: 'unchanged', bytes }
  // Rejected with 409 if the Secret has changed, so a delayed write of an earlier leader fails.
  const { resourceVersion } = stored.metadata
  const annotations = { [ANNOTATION]: version.version }
  const sum = bytes + specs.length
  // The version matters more than the specs.
  const kept = sum > STORED_BYTES_MAX ? null : specs.toString('base64')
  await api.call({
    method: 'PATCH',
    path,
    contentType: 'application/merge-patch+json',
    body: {
      metadata: { resourceVersion, annotations },
      data: { [DATA_KEY]: encoded, [ACCEPTED_KEY]: kept },
    },
    signal,
  })
  return { outcome: 'written', bytes: sum }
}

/**
 * Reads the accepted specs that the previous leader stored, by the uid of the policy. If that fails
 * or takes longer than READ_MS_MAX, only those in the statuses count: logged. Never rejects.
 */
export async function readAccepted(
  deps: Pick<LastVersionDeps, 'api' | 'secret' | 'metrics' | 'log'> & {
    readonly scheduler: Scheduler
  },
  parent: AbortSignal,
): Promise<ReadonlyMap<string, UnreportedSpec>> {
  const { api, secret, log, metrics } = deps
  const { signal, clear } = createDeadline(deps.scheduler, READ_MS_MAX, parent)
  try {
    const path = pathOf(SECRETS, secret)
    const stored = (await api.call({ method: 'GET', path, signal })) as StoredSecret
    const encoded = stored.data?.[ACCEPTED_KEY]
    return encoded === undefined ? new Map() : await decodeAccepted(Buffer.from(encoded, 'base64'))
  } catch (err) {
    if (!parent.aborted) {
      metrics.backgroundFailures.inc({ task: 'read-version' })
      log.warn({ err, secret: secret.name }, 'accepted specs of the previous leader not read')
    }
    return new Map()
  } finally {
    clear()
  }
}
