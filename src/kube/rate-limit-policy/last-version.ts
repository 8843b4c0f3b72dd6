// Stores the newest compiled version in a Secret, from which limiters load their rules if they
// start while no controller is reachable. A Secret, because rules can contain hashes of API keys.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { type BackOffBounds, createBackOff } from '../back-off.ts'
import { KubeError } from '../kube-error.ts'
import { type ObjectMeta, pathOf } from '../objects.ts'
import type { ReconcileResult } from '../run-workers.ts'
import type { Scheduler } from '../scheduler.ts'
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
  readonly scheduler: Pick<Scheduler, 'nowMs'>
  readonly random: () => number
  readonly metrics: Pick<Metrics, 'backgroundFailures'>
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** The stored version of a leader. */
export interface LastVersion {
  /** Stores `version` soon, unless a newer one is recorded. */
  readonly record: (version: CompiledVersion) => void
  /**
   * Stores the newest version if the Secret contains another. To be repeated, because others can
   * change the Secret. Rejects on abort, or a defect.
   */
  readonly write: (signal: AbortSignal) => Promise<ReconcileResult>
}

/** The key of the gzipped version in the Secret. */
const DATA_KEY = 'version.pb.gz'
/** The annotation with its name, for people. */
const ANNOTATION = 'curtail.dev/version'
const SECRETS = { group: '', version: 'v1', plural: 'secrets' } as const
/** Kubernetes' maximum for the data of a Secret. */
const STORED_BYTES_MAX = 1024 * 1024
const QUIET_MS = 1000
const WRITE_INTERVAL_MS = 10_000
const CHECK_INTERVAL_MS = 600_000
const RETRY_BACK_OFF: BackOffBounds = { initialMs: 1000, maxMs: 60_000, resetAfterMs: 120_000 }

const compress = promisify(gzip)

/** Creates it for a process that has just become the leader; it then reads the Secret once. */
export function createLastVersion(deps: LastVersionDeps): LastVersion {
  const { scheduler, log, metrics, enqueue } = deps
  const secret = deps.secret.name
  const backOff = createBackOff(RETRY_BACK_OFF, deps)
  let newest: CompiledVersion | undefined
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
  const recordOutcome = (outcome: Outcome, version: string) => {
    settled = version
    isFailing = false
    if (outcome === 'written') {
      notBeforeMs = scheduler.nowMs() + WRITE_INTERVAL_MS
      log.info({ secret, version }, 'last version stored')
    } else if (outcome === 'too-large') {
      metrics.backgroundFailures.inc({ task: 'store-version' })
      log.warn({ secret, version }, `version not stored: more than ${STORED_BYTES_MAX} bytes`)
    }
  }
  return {
    record(version) {
      newest = version
      if (version.version !== settled) enqueue(QUIET_MS)
    },
    async write(signal) {
      const version = newest
      if (version === undefined) return {}
      const waitMs = notBeforeMs - scheduler.nowMs()
      if (waitMs > 0) return { requeueAfterMs: waitMs }
      settled = undefined
      try {
        const outcome = await store(deps, version, signal)
        recordOutcome(outcome, version.version)
        return outcome === 'too-large' ? {} : { requeueAfterMs: CHECK_INTERVAL_MS }
      } catch (error) {
        if (signal.aborted || !(error instanceof KubeError)) throw error
        recordFailure(error)
        return { requeueAfterMs: notBeforeMs - scheduler.nowMs() }
      }
    },
  }
}

type Outcome = 'written' | 'unchanged' | 'too-large'

interface StoredSecret {
  readonly metadata: ObjectMeta
  readonly data?: Readonly<Record<string, string>>
}

/** Replaces the stored version if it differs. Throws KubeError. */
async function store(
  { api, secret, serialize }: LastVersionDeps,
  version: CompiledVersion,
  signal: AbortSignal,
): Promise<Outcome> {
  const bytes = await compress(await serialize(version))
  if (bytes.length > STORED_BYTES_MAX) return 'too-large'
  const path = pathOf(SECRETS, secret)
  const stored = (await api.call({ method: 'GET', path, signal })) as StoredSecret
  const encoded = bytes.toString('base64')
  if (stored.data?.[DATA_KEY] === encoded) return 'unchanged'
  // Rejected with 409 if the Secret has changed, so a delayed write of an earlier leader fails.
  const { resourceVersion } = stored.metadata
  const annotations = { [ANNOTATION]: version.version }
  await api.call({
    method: 'PATCH',
    path,
    contentType: 'application/merge-patch+json',
    body: { metadata: { resourceVersion, annotations }, data: { [DATA_KEY]: encoded } },
    signal,
  })
  return 'written'
}
