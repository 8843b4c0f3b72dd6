// Processes of pods that are stopped as by a fault of the machine, when they hold their connections
// and say nothing, or ended. Found by the id of their container in their control group.
import { readdir, readFile } from 'node:fs/promises'
import { getObject } from './cluster.ts'
import { RELEASE } from './release.ts'

/** What is done to the processes of a container. */
export interface Frozen {
  /** Lets them go on, those that are still there. */
  readonly thaw: () => void
}

/** Stops all processes of a pod's containers, or of the one that is named. */
export async function freeze(pod: string, container?: string): Promise<Frozen> {
  const pids = await pidsOf(pod, container)
  signal(pids, 'SIGSTOP')
  return {
    thaw: () => {
      signal(pids, 'SIGCONT')
    },
  }
}

/** Tells the processes of one container of a pod to end, as the kubelet does. */
export async function terminate(pod: string, container: string): Promise<void> {
  signal(await pidsOf(pod, container), 'SIGTERM')
}

/** Stops them for `stopMs`, and lets them go on for `goMs`, again and again. */
export async function stutter(
  pod: string,
  { stopMs, goMs }: { stopMs: number; goMs: number },
): Promise<Frozen> {
  const pids = await pidsOf(pod)
  let timer: NodeJS.Timeout
  const stop = () => {
    signal(pids, 'SIGSTOP')
    timer = setTimeout(go, stopMs)
  }
  const go = () => {
    signal(pids, 'SIGCONT')
    timer = setTimeout(stop, goMs)
  }
  stop()
  return {
    thaw: () => {
      clearTimeout(timer)
      signal(pids, 'SIGCONT')
    },
  }
}

interface Started {
  readonly name: string
  readonly containerID?: string
}

async function pidsOf(pod: string, container?: string): Promise<readonly number[]> {
  const { status } = await getObject<{
    status: { containerStatuses: readonly Started[]; initContainerStatuses?: readonly Started[] }
  }>('pod', pod, '--namespace', RELEASE)
  const all = [...(status.initContainerStatuses ?? []), ...status.containerStatuses]
  const ids = all.flatMap(({ name, containerID }) => {
    // One that has yet to start has no id, and no process.
    const id = containerID?.split('//')[1] ?? ''
    return id === '' || (container !== undefined && name !== container) ? [] : [id]
  })
  const running = (await readdir('/proc')).map(Number).filter((pid) => pid > 0)
  const inside = await Promise.all(
    running.map(async (pid) => {
      // A process that has ended meanwhile has none.
      const group = await readFile(`/proc/${String(pid)}/cgroup`, 'utf8').catch(() => '')
      return ids.some((id) => group.includes(id)) ? [pid] : []
    }),
  )
  const pids = inside.flat()
  if (pids.length === 0) throw new Error(`the pod ${pod} has no process on this machine`)
  return pids
}

function signal(pids: readonly number[], name: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // it has ended
    }
  }
}
