// Sets an annotation of the pods that mount operator lists. The kubelet updates the mounted files
// of a pod at intervals of a minute or more, and immediately when an annotation changes.
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { hasStatus, KubeError } from '../kube-error.ts'
import { listAll } from '../list-all.ts'
import { type KubeObject, pathOf } from '../objects.ts'

/** The annotation: the version of the lists for which the kubelet was last notified. */
const LISTS_ANNOTATION = 'curtail.dev/lists'

/** Dependencies, and which pods to annotate. */
export interface PodAnnotatorDeps {
  /** Rejects writes unless this replica leads. */
  readonly api: Pick<KubeApi, 'call'>
  readonly namespace: string
  readonly podSelector: string
  readonly metrics: Pick<Metrics, 'backgroundFailures'>
  readonly log: Pick<Log, 'warn'>
}

/** The value to set. */
interface PodAnnotation {
  readonly value: string
  /** Values of later stages, which `value` must not replace. */
  readonly later: readonly string[]
}

/** The result of an attempt. */
interface AnnotatedPods {
  /** The number of pods without a failure. */
  readonly pods: number
  /** Whether every pod has the value or a later one, or has been deleted. */
  readonly isComplete: boolean
}

/** Annotates the pods. */
export interface PodAnnotator {
  /**
   * Sets the annotation on each pod that has neither the value nor a later one. Every failure is
   * counted; the failures of an attempt are logged together, unless the same error was logged last.
   */
  readonly annotate: (annotation: PodAnnotation, signal: AbortSignal) => Promise<AnnotatedPods>
}

const PODS = { group: '', version: 'v1', plural: 'pods' }
const CONCURRENCY = 8
const PATCH_MS_MAX = 5000

/** Creates an annotator. */
export function createPodAnnotator(deps: PodAnnotatorDeps): PodAnnotator {
  const failureLog = createFailureLog(deps)
  return {
    async annotate({ value, later }, signal) {
      const pods = await listPods(deps, signal)
      if (pods instanceof KubeError) {
        if (countFailure(deps, pods, signal)) failureLog.warn('pods not listed: retrying', [pods])
        return { pods: 0, isComplete: false }
      }
      const isCurrent = ({ metadata }: KubeObject) =>
        [value, ...later].includes(metadata.annotations?.[LISTS_ANNOTATION] ?? '')
      const pending = pods.filter((pod) => !isCurrent(pod))
      const { failed, counted } = await annotateAll(deps, { pods: pending, value }, signal)
      const isComplete = failed === 0 && !signal.aborted
      if (isComplete) failureLog.reset()
      else failureLog.warn('pods not annotated: retrying', counted)
      return { pods: pods.length - failed, isComplete }
    },
  }
}

/** Logs failures if the first one differs from the one that was logged last. */
function createFailureLog({ log }: Pick<PodAnnotatorDeps, 'log'>) {
  let logged: string | undefined
  return {
    warn(message: string, [err, ...others]: readonly KubeError[]) {
      if (err === undefined) return
      // Without the message of the error, which contains the name of the pod.
      const failure = [message, err.status, err.reason].join()
      if (failure === logged) return
      logged = failure
      log.warn({ err, failures: others.length + 1 }, message)
    },
    /** Must be called after a success: the next failure is then logged. */
    reset() {
      logged = undefined
    },
  }
}

/** Returns the number of failures, and those that were counted, in the order of the pods. */
async function annotateAll(
  deps: PodAnnotatorDeps,
  { pods, value }: { readonly pods: readonly KubeObject[]; readonly value: string },
  signal: AbortSignal,
): Promise<{ readonly failed: number; readonly counted: readonly KubeError[] }> {
  const counted: (KubeError | undefined)[] = pods.map(() => undefined)
  const entries = pods.entries() // shared: each worker takes the next entry
  let failed = 0
  const work = async () => {
    for (const [at, { metadata }] of entries) {
      if (signal.aborted) return
      const failure = await annotate(deps, { pod: metadata.name, value }, signal)
      if (failure === undefined) continue
      failed++
      if (countFailure(deps, failure, signal)) counted[at] = failure
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  return { failed, counted: counted.filter((failure) => failure !== undefined) }
}

/** The name and the annotation of each pod, or why the list failed. */
async function listPods(
  { api, namespace, podSelector }: PodAnnotatorDeps,
  signal: AbortSignal,
): Promise<readonly KubeObject[] | KubeError> {
  let pods: readonly KubeObject[] = []
  const cache = {
    replace(objects: readonly KubeObject[]) {
      pods = objects
    },
  }
  const selection = { labelSelector: podSelector, isMetadataOnly: true }
  const options = { api, namespace, ...selection, resource: PODS, cache, trim: trimToAnnotation }
  try {
    await listAll<KubeObject>({ ...options, onPage: () => undefined }, signal)
    return pods
  } catch (error) {
    if (error instanceof KubeError) return error
    throw error
  }
}

function trimToAnnotation({ metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, annotations } = metadata
  const value = annotations?.[LISTS_ANNOTATION]
  const kept = value === undefined ? {} : { annotations: { [LISTS_ANNOTATION]: value } }
  return { metadata: { name, namespace, uid, resourceVersion, ...kept } }
}

/** Returns why the pod does not have the value; `undefined` if it has it, or has been deleted. */
async function annotate(
  { api, namespace }: PodAnnotatorDeps,
  { pod, value }: { readonly pod: string; readonly value: string },
  signal: AbortSignal,
): Promise<KubeError | undefined> {
  try {
    await api.call({
      method: 'PATCH',
      path: pathOf(PODS, { namespace, name: pod }),
      contentType: 'application/merge-patch+json',
      body: { metadata: { annotations: { [LISTS_ANNOTATION]: value } } },
      msMax: PATCH_MS_MAX,
      signal,
    })
    return undefined
  } catch (error) {
    if (hasStatus(error, 404)) return undefined
    if (error instanceof KubeError) return error
    throw error
  }
}

/** Counts a failure and returns true, unless the process stops or does not lead. */
function countFailure(
  { metrics }: PodAnnotatorDeps,
  { reason }: KubeError,
  signal: AbortSignal,
): boolean {
  if (signal.aborted || reason === 'NotLeading') return false
  metrics.backgroundFailures.inc({ task: 'annotate-pods' })
  return true
}
