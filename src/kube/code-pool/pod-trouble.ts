// Why the pod of a refill Job failed, or does not begin: from what the pod says, and where it says
// nothing, from the events about it. Reads only; asked only when something is wrong.
import type { Trouble } from '../../codes/refill-sight.ts'
import type { KubeApi } from '../api.ts'
import { type KubeObject, pathOf } from '../objects.ts'

const PODS = { group: '', version: 'v1', plural: 'pods' } as const
const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' } as const
const PODS_MAX = 10
const EVENTS_MAX = 50
/** How `refill` ends where the pool was begun with another secret. */
const EXIT_OTHER_SECRET = 3

/** The reasons of a pod that does not begin. */
export const NOT_BEGUN: ReadonlySet<string> = new Set([
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

/** What is wrong with the newest pod of a Job; `null` where nothing shows. Throws KubeError. */
export async function readPodTrouble(
  api: KubeApi,
  { namespace, job, signal }: { namespace: string; job: string; signal: AbortSignal },
): Promise<Trouble | null> {
  const list = (await api.call({
    method: 'GET',
    path: pathOf(PODS, { namespace }),
    query: { labelSelector: `batch.kubernetes.io/job-name=${job}`, limit: String(PODS_MAX) },
    signal,
  })) as { items?: readonly Pod[] }
  const pods = [...(list.items ?? [])].sort((one, other) => bornMs(other) - bornMs(one))
  const [pod] = pods
  if (pod === undefined) return null
  return troubleOfPod(pod) ?? (await readEventTrouble(api, { namespace, pod, signal }))
}

function bornMs({ metadata }: Pod): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0
}

/** What a pod says is wrong with it. */
export function troubleOfPod({ status = {} }: Pod): Trouble | null {
  const unscheduled = status.conditions?.find(
    ({ type, status: holds }) => type === 'PodScheduled' && holds === 'False',
  )
  if (unscheduled !== undefined)
    return { reason: 'PodUnschedulable', message: unscheduled.message ?? 'no node takes the pod' }
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  for (const { name, state } of containers) {
    const trouble = state === undefined ? null : troubleOfContainer(name, state)
    if (trouble !== null) return trouble
  }
  return null
}

/** What containers wait for as they begin. */
const BEGINNINGS = new Set(['ContainerCreating', 'PodInitializing'])

function troubleOfContainer(name: string, { waiting, terminated }: ContainerState): Trouble | null {
  if (terminated !== undefined && terminated.exitCode !== 0) return troubleOfExit(name, terminated)
  if (waiting?.reason === undefined || BEGINNINGS.has(waiting.reason)) return null
  const message = `${name} waits: ${waiting.reason}: ${waiting.message ?? ''}`
  return { reason: 'PodNotStarted', message }
}

function troubleOfExit(
  name: string,
  { exitCode, reason, message = '' }: NonNullable<ContainerState['terminated']>,
): Trouble {
  // The program's last sentence stands behind its log's lines.
  const said = message.split('\n').findLast((line) => line.startsWith('curtail: '))
  const sentence = said?.slice('curtail: '.length) ?? `${reason ?? 'Error'}, exit code ${exitCode}`
  const isOther = name === 'refill' && exitCode === EXIT_OTHER_SECRET
  return {
    reason: isOther ? 'SecretChanged' : 'RefillFailed',
    message: `${name}: ${sentence}`,
  }
}

async function readEventTrouble(
  api: KubeApi,
  { namespace, pod, signal }: { namespace: string; pod: Pod; signal: AbortSignal },
): Promise<Trouble | null> {
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
  const isMissing = /secret "[^"]*" not found|references non-existent secret key/.test(note)
  return {
    reason: isMissing ? 'SecretMissing' : 'PodNotStarted',
    message: `${last.reason ?? 'Warning'}: ${note}`,
  }
}
