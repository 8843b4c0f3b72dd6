// Stores the newest compiled version, and the accepted specs that no status contains yet. A limiter
// that starts while no controller is reachable loads the version; the next leader reads the specs.
// Both are in a Secret, because rules can contain hashes of API keys.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { type BackOffBounds, createBackOff } from '../back-off.ts'
import { hasStatus, KubeError } from '../kube-error.ts'
import { type ObjectMeta, pathOf } from '../objects.ts'
import type { ReconcileResult } from '../run-workers.ts'
import { createDeadline, pauseFor, type Scheduler } from '../scheduler.ts'
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
  /** Called when a recorded version is stored or too large, or when storing it has failed. */
  readonly onSettled: (version: CompiledVersion) => void
  readonly scheduler: Pick<Scheduler, 'nowMs'>
  readonly random: () => number
  readonly metrics: Pick<Metrics, 'backgroundFailures'>
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** The stored version of a leader. */
export interface LastVersion {
  /** Stores `version` with `accepted` once the rate allows it, unless a newer version follows. */
  readonly record: (version: CompiledVersion, accepted: readonly UnreportedSpec[]) => void
  /**
   * Stores the newest version if the Secret contains another. Call it periodically, because
   * other clients can change the Secret. Rejects on abort, or a defect.
   */
  readonly write: (signal: AbortSignal) => Promise<ReconcileResult>
}

/** The key of the gzipped version in the Secret. */
const DATA_KEY = 'version.pb.gz'
/** The key of the accepted specs. */
const ACCEPTED_KEY = 'accepted.json.gz'
/** The annotation with the name of the version, for people. */
const ANNOTATION = 'curtail.dev/version'
const SECRETS = { group: '', version: 'v1', plural: 'secrets' } as const
/** Kubernetes' maximum for the data of a Secret. */
const STORED_BYTES_MAX = 1024 * 1024
/** The API server, its watchers and etcd receive at most this many bytes per ms from us. */
const BYTES_PER_MS = 100
const CHECK_INTERVAL_MS = 600_000
/** Delays after another client has changed the Secret. */
const CONFLICT_BACK_OFF: BackOffBounds = { initialMs: 50, maxMs: 10_000, resetAfterMs: 60_000 }
const READ_MS_MAX = 5000
const READS_MAX = 3
const READ_PAUSE_MS = 500
const RETRY_BACK_OFF: BackOffBounds = { initialMs: 1000, maxMs: 60_000, resetAfterMs: 120_000 }

const compress = promisify(gzip)

/** Creates the storage of a process that has just become the leader. */
export function createLastVersion(deps: LastVersionDeps): LastVersion {
  const { scheduler, log, metrics, enqueue, onSettled } = deps
  const secret = deps.secret.name
  const backOff = createBackOff(RETRY_BACK_OFF, deps)
  let conflictBackOff = createBackOff(CONFLICT_BACK_OFF, deps)
  let newest: Recorded | undefined
  /** The last version stored or found too large; `undefined` while a write runs or has failed. */
  let handled: Recorded | undefined
  let notBeforeMs = -Infinity
  let isFailing = false
  const recordFailure = (err: unknown) => {
    metrics.backgroundFailures.inc({ task: 'store-version' })
    if (!isFailing) log.warn({ err, secret }, 'last version not stored: retrying')
    isFailing = true
    notBeforeMs = scheduler.nowMs() + backOff.nextMs()
  }
  const recordOutcome = ({ outcome, bytes }: Outcome, recorded: Recorded) => {
    const { version } = recorded.version
    handled = recorded
    isFailing = false
    conflictBackOff = createBackOff(CONFLICT_BACK_OFF, deps)
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
      const isHandled = handled !== undefined && contains(handled, newest)
      if (!isHandled) enqueue(0)
      if (isHandled || isFailing) onSettled(version)
    },
    async write(signal) {
      const recorded = newest
      if (recorded === undefined) return {}
      const waitMs = notBeforeMs - scheduler.nowMs()
      if (waitMs > 0) return { requeueAfterMs: waitMs }
      handled = undefined
      try {
        const result = await store(deps, recorded, signal)
        recordOutcome(result, recorded)
        onSettled(recorded.version)
        return result.outcome === 'too-large' ? {} : { requeueAfterMs: CHECK_INTERVAL_MS }
      } catch (error) {
        if (signal.aborted || !(error instanceof KubeError)) throw error
        if (hasStatus(error, 409)) return { requeueAfterMs: conflictBackOff.nextMs() }
        recordFailure(error)
        onSettled((newest ?? recorded).version)
        return { requeueAfterMs: notBeforeMs - scheduler.nowMs() }
      }
    },
  }
}

/** A version to store, and the specs to store with it. */
interface Recorded {
  readonly version: CompiledVersion
  readonly accepted: readonly UnreportedSpec[]
}

/** Whether `handled` is this version, and has all of its specs. */
function contains(handled: Recorded, { version, accepted }: Recorded): boolean {
  if (handled.version.version !== version.version) return false
  const generations = new Map(handled.accepted.map(({ uid, generation }) => [uid, generation]))
  return accepted.every(({ uid, generation }) => generations.get(uid) === generation)
}

interface Outcome {
  readonly outcome: 'written' | 'unchanged' | 'too-large'
  readonly bytes: number
}

interface StoredSecret {
  readonly metadata: ObjectMeta
  readonly data?: Readonly<Record<string, string>>
}

/** Replaces what is stored if it differs. Throws KubeError. */
async function store(
  { api, secret, serialize, log }: LastVersionDeps,
  { version, accepted }: Recorded,
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
  const sum = bytes + specs.length
  const isFitting = sum <= STORED_BYTES_MAX
  if (!isFitting) log.warn({ secret: secret.name }, 'accepted specs not stored: they do not fit')
  const kept = isFitting ? specs.toString('base64') : null // the version matters more
  const { data = {} } = stored
  const hasSpecs = accepted.length === 0 || data[ACCEPTED_KEY] === (kept ?? undefined)
  if (data[DATA_KEY] === encoded && hasSpecs) return { outcome: 'unchanged', bytes }
  // Rejected with 409 if the Secret has changed, so a delayed write of an earlier leader fails.
  const { resourceVersion } = stored.metadata
  const annotations = { [ANNOTATION]: version.version }
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
 * Reads the accepted specs that the previous leader stored, by the uid of the policy. If READS_MAX
 * attempts fail, logs that, and returns none: only those in the statuses count. Never rejects.
 */
export async function readAccepted(
  deps: ReadDeps,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, UnreportedSpec>> {
  const { secret, log, metrics, scheduler } = deps
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      return await readOnce(deps, signal)
    } catch (err) {
      if (attempt < READS_MAX) {
        await pauseFor(scheduler, READ_PAUSE_MS, signal)
        continue
      }
      metrics.backgroundFailures.inc({ task: 'read-version' })
      log.warn({ err, secret: secret.name }, 'accepted specs of the previous leader not read')
      break
    }
  }
  return new Map()
}

type ReadDeps = Pick<LastVersionDeps, 'api' | 'secret' | 'metrics' | 'log'> & {
  readonly scheduler: Scheduler
}

async function readOnce({ api, secret, scheduler }: ReadDeps, parent: AbortSignal) {
  const { signal, clear } = createDeadline(scheduler, READ_MS_MAX, parent)
  try {
    const path = pathOf(SECRETS, secret)
    const stored = (await api.call({ method: 'GET', path, signal })) as StoredSecret
    const encoded = stored.data?.[ACCEPTED_KEY]
    return encoded === undefined ? new Map() : await decodeAccepted(Buffer.from(encoded, 'base64'))
  } finally {
    clear()
  }
}
