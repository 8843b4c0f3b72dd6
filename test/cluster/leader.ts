// Who leads among the controllers of the release, and signals to the process of one.
import { residentBytesIn } from '../component/resident-bytes.ts'
import { getObject, onNode } from './cluster.ts'
import { RELEASE } from './release.ts'

/** A controller that leads. */
export interface Leader {
  /** In the Lease; another with each process. */
  readonly identity: string
  readonly pod: string
}

interface Lease {
  readonly spec?: { readonly holderIdentity?: string }
}

/** Who holds the Lease; `undefined` while nobody does. */
export async function readLeader(): Promise<Leader | undefined> {
  const { spec } = await getObject<Lease>(
    ...['lease', 'curtail-controller', '--namespace', RELEASE],
  )
  const identity = spec?.holderIdentity ?? ''
  return identity === '' ? undefined : { identity, pod: identity.split('_')[0] ?? '' }
}

interface Pod {
  readonly status: {
    readonly containerStatuses: readonly {
      readonly containerID: string
      readonly restartCount: number
      readonly lastState: { readonly terminated?: { readonly exitCode: number } }
    }[]
  }
}

/** What a pod says of its only container. */
export async function containerOf(pod: string) {
  const { status } = await getObject<Pod>('pod', pod, '--namespace', RELEASE)
  const [container] = status.containerStatuses
  if (container === undefined) throw new Error(`${pod} has no container yet`)
  return container
}

/** The process of a pod's only container, as the node counts. */
export async function processOf(pod: string): Promise<string> {
  const { containerID } = await containerOf(pod)
  const id = containerID.replace('containerd://', '')
  const told = await onNode('sh', '-c', `grep -ls ${id} /proc/[0-9]*/cgroup || true`)
  const pid = /\/proc\/(\d+)\//.exec(told)?.[1]
  if (pid === undefined) throw new Error(`${pod} has no process: ${told}`)
  return pid
}

/** Sends a signal to a process of the node. */
export async function signalTo(pid: string, signal: 'KILL' | 'TERM' | 'STOP' | 'CONT') {
  await onNode('kill', `-${signal}`, pid)
}

/** Memory of a process that is in use, in bytes. */
export async function residentBytes(pid: string): Promise<number> {
  const told = await onNode('cat', `/proc/${pid}/status`)
  return residentBytesIn(told)
}
