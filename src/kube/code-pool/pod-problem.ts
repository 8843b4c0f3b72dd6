// Reads why the pod of a refill Job failed or does not start: from the pod's status, or from its
// events if the status shows no problem.
import type { Problem } from '../../codes/observed-state.ts'
import type { KubeApi } from '../api.ts'
import { type KubeObject, pathOf } from '../objects.ts'
import { EXIT_OTHER_SECRET, REFILL_CONTAINER } from './refill-jobs.ts'

const PODS = { group: '', version: 'v1', plural: 'pods' } as const
const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' } as const
const PODS_MAX = 10
const EVENTS_MAX = 50

/** The problem reasons of a pod that does not start. */
export const NOT_STARTED_REASONS: ReadonlySet<string> = new Set([
  'PodNotStarted',
  'PodUnschedulable',
  'SecretMissing',
])

interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string }
  readonly terminated?: {
    readonly exitCode: number
    readonly reason?: string
    readonly message?: string
  }
}

interface Pod extends KubeObject {
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string
      readonly status: string
      readonly reason?: string
      readonly message?: string
    }[]
    readonly initContainerStatuses?: readonly {
      readonly name: string
      readonly state?: ContainerState
    }[]
    readonly containerStatuses?: readonly {
      readonly name: string
      readonly state?: ContainerState
    }[]
  }
}

/** The problem of the newest pod of a Job; `null` if it shows none. Throws KubeError. */
export async function readPodProblem(
  api: KubeApi,
  { namespace, job, signal }: { namespace: string; job: string; signal: AbortSignal },
): Promise<Problem | null> {
  const list = (await api.call({
    method: 'GET',
    path: pathOf(PODS, { namespace }),
    query: { labelSelector: `batch.kubernetes.io/job-name=${job}`, limit: String(PODS_MAX) },
    signal,
  })) as { items?: readonly Pod[] }
  const pods = [...(list.items ?? [])].sort((one, other) => createdMs(other) - createdMs(one))
  const [pod] = pods
  if (pod === undefined) return null
  return problemOfPod(pod) ?? (await readEventProblem(api, { namespace, pod, signal }))
}

function createdMs({ metadata }: Pod): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0
}

/** The problem in the status of a pod; `null` if there is none. */
export function problemOfPod({ status = {} }: Pod): Problem | null {
  const unscheduled = status.conditions?.find(
    ({ type, status: value }) => type === 'PodScheduled' && value === 'False',
  )
  if (unscheduled !== undefined)
    return { reason: 'PodUnschedulable', message: unscheduled.message ?? 'no node accepts the pod' }
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  for (const { name, state } of containers) {
    const problem = state === undefined ? null : problemOfContainer(name, state)
    if (problem !== null) return problem
  }
  return null
}

/** Reasons for which a container waits during a normal start. */
const STARTING_REASONS = new Set(['ContainerCreating', 'PodInitializing'])

function problemOfContainer(name: string, { waiting, terminated }: ContainerState): Problem | null {
  if (terminated !== undefined && terminated.exitCode !== 0) return problemOfExit(name, terminated)
  if (waiting?.reason === undefined || STARTING_REASONS.has(waiting.reason)) return null
  const message = `${name} is waiting: ${waiting.reason}: ${waiting.message ?? ''}`
  return { reason: 'PodNotStarted', message }
}

function problemOfExit(
  name: string,
  { exitCode, reason, message = '' }: NonNullable<ContainerState['terminated']>,
): Problem {
  // The termination message has log lines, followed by the program's error message.
  const errorLine = message.split('\n').findLast((line) => line.startsWith('curtail: '))
  const detail =
    errorLine?.slice('curtail: '.length) ?? `${reason ?? 'Error'}, exit code ${exitCode}`
  const isOtherSecret = name === REFILL_CONTAINER && exitCode === EXIT_OTHER_SECRET
  return {
    reason: isOtherSecret ? 'SecretChanged' : 'RefillFailed',
    message: `${name}: ${detail}`,
  }
}

async function readEventProblem(
  api: KubeApi,
  { namespace, pod, signal }: { namespace: string; pod: Pod; signal: AbortSignal },
): Promise<Problem | null> {
  const fieldSelector = `regarding.uid=${pod.metadata.uid},type=Warning`
  const list = (await api.call({
    method: 'GET',
    path: pathOf(EVENTS, { namespace }),
    query: { fieldSelector, limit: String(EVENTS_MAX) },
    signal,
  })) as { items?: readonly { readonly reason?: string; readonly note?: string }[] }
  const last = list.items?.at(-1)
  if (last === undefined) return null
  const note = last.note ?? ''
  const isSecretMissing = /secret "[^"]*" not found|references non-existent secret key/.test(note)
  return {
    reason: isSecretMissing ? 'SecretMissing' : 'PodNotStarted',
    message: `${last.reason ?? 'Warning'}: ${note}`,
  }
}
