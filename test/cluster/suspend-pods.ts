// Suspends the processes of a pod (SIGSTOP), so that they keep their connections open and do not
// respond, or terminates them. Finds them by their container's id in /proc/PID/cgroup.
import { readdir, readFile } from 'node:fs/promises'
import { getObject } from './cluster.ts'
import { RELEASE } from './release.ts'

/** A pod whose processes are suspended. */
export interface SuspendedPod {
  /** Resumes the processes that still exist. */
  readonly resume: () => void
}

/** Suspends all processes of a pod's containers, or of one container. */
export async function suspend(pod: string, container?: string): Promise<SuspendedPod> {
  const pids = await pidsOf(pod, container)
  signal(pids, 'SIGSTOP')
  return {
    resume: () => {
      signal(pids, 'SIGCONT')
    },
  }
}

/** Sends SIGTERM to the processes of one container of a pod, as the kubelet does. */
export async function terminate(pod: string, container: string): Promise<void> {
  signal(await pidsOf(pod, container), 'SIGTERM')
}

/** Suspends all processes of a pod for `suspendMs`, resumes them for `runMs`, and so on. */
export async function suspendRepeatedly(
  pod: string,
  { suspendMs, runMs }: { suspendMs: number; runMs: number },
): Promise<SuspendedPod> {
  const pids = await pidsOf(pod)
  let timer: NodeJS.Timeout
  const suspendAll = () => {
    signal(pids, 'SIGSTOP')
    timer = setTimeout(resumeAll, suspendMs)
  }
  const resumeAll = () => {
    signal(pids, 'SIGCONT')
    timer = setTimeout(suspendAll, runMs)
  }
  suspendAll()
  return {
    resume: () => {
      clearTimeout(timer)
      signal(pids, 'SIGCONT')
    },
  }
}

interface ContainerStatus {
  readonly name: string
  readonly containerID?: string
}

async function pidsOf(pod: string, container?: string): Promise<readonly number[]> {
  const { status } = await getObject<{
    status: {
      containerStatuses: readonly ContainerStatus[]
      initContainerStatuses?: readonly ContainerStatus[]
    }
  }>('pod', pod, '--namespace', RELEASE)
  const all = [...(status.initContainerStatuses ?? []), ...status.containerStatuses]
  const ids = all.flatMap(({ name, containerID }) => {
    // A container that has not started has no id and no process.
    const id = containerID?.split('//')[1] ?? ''
    return id === '' || (container !== undefined && name !== container) ? [] : [id]
  })
  const running = (await readdir('/proc')).map(Number).filter((pid) => pid > 0)
  const found = await Promise.all(
    running.map(async (pid) => {
      // The process may have exited after readdir().
      const groups = await readFile(`/proc/${String(pid)}/cgroup`, 'utf8').catch(() => '')
      return ids.some((id) => groups.includes(id)) ? [pid] : []
    }),
  )
  const pids = found.flat()
  if (pids.length === 0) throw new Error(`the pod ${pod} has no process on this machine`)
  return pids
}

function signal(pids: readonly number[], name: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // it has exited
    }
  }
}
