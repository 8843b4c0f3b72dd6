// The leading controller pod of the release, and signals to the process of a controller.
import { residentBytesIn } from '../kit/resident-bytes.ts'
import { getObject, runOnNode } from './cluster.ts'
import { RELEASE } from './release.ts'

/** The controller that leads. */
export interface Leader {
  /** The Lease's holder; unique to each process. */
  readonly identity: string
  readonly pod: string
  /** When it acquired the Lease, by its clock. */
  readonly acquiredMs: number
}

interface Lease {
  readonly spec?: { readonly holderIdentity?: string; readonly acquireTime?: string }
}

/** The holder of the Lease; `undefined` while no controller holds it. */
export async function readLeader(): Promise<Leader | undefined> {
  const { spec } = await getObject<Lease>(
    ...['lease', 'curtail-controller', '--namespace', RELEASE],
  )
  const identity = spec?.holderIdentity ?? ''
  if (identity === '') return undefined
  const acquiredMs = Date.parse(spec?.acquireTime ?? '')
  return { identity, pod: identity.split('_')[0] ?? '', acquiredMs }
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

/** The status of a pod's only container. */
export async function getContainer(pod: string) {
  const { status } = await getObject<Pod>('pod', pod, '--namespace', RELEASE)
  const [container] = status.containerStatuses
  if (container === undefined) throw new Error(`${pod} has no container yet`)
  return container
}

/** The pid, in the node's PID namespace, of a pod's only container. */
export async function findPid(pod: string): Promise<string> {
  const { containerID } = await getContainer(pod)
  const id = containerID.replace('containerd://', '')
  const files = await runOnNode('sh', '-c', `grep -ls ${id} /proc/[0-9]*/cgroup || true`)
  const pid = /\/proc\/(\d+)\//.exec(files)?.[1]
  if (pid === undefined) throw new Error(`${pod} has no process: ${files}`)
  return pid
}

/** Sends a signal to a process on the node. */
export async function sendSignal(pid: string, signal: 'KILL' | 'TERM' | 'STOP' | 'CONT') {
  await runOnNode('kill', `-${signal}`, pid)
}

/** Resident memory of a process, in bytes. */
export async function residentBytes(pid: string): Promise<number> {
  return residentBytesIn(await runOnNode('cat', `/proc/${pid}/status`))
}
