// Control groups (version 1) for the pods of a test cluster: a folder in every controller, below
// the memory group of this process, so that its limits apply to the pods too.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

const MOUNTED = '/sys/fs/cgroup'
const CONTROLLERS = [
  'blkio',
  'cpu',
  'cpuacct',
  'cpuset',
  'devices',
  'freezer',
  'memory',
  'pids',
  'systemd',
]
/**
 * CPU shares of all pods together; every thread outside of them has 1024. Tests run dozens of
 * threads at a time (kubectl, helm): with 1024 shares, the pods' probes would time out.
 */
const POD_SHARES = 8192

/** Creates the groups; resolves to their path below each controller. Throws without cgroup v1. */
export async function createControlGroups(name: string): Promise<string> {
  const own = /^\d+:(?:[\w,=]*,)?memory(?:,[\w,=]*)?:(.*)$/m.exec(
    await readFile('/proc/self/cgroup', 'utf8'),
  )?.[1]
  if (own === undefined) {
    throw new Error('the test cluster needs control groups of version 1 (a memory controller)')
  }
  const path = join(own, name)
  for (const controller of await presentControllers()) {
    await mkdir(join(MOUNTED, controller, path), { recursive: true })
    if (controller === 'cpuset') await fillCpuset(join(MOUNTED, controller), path)
    if (controller === 'cpu') await setPodShares(join(MOUNTED, controller), path)
  }
  return path
}

/** The folders of a group, including those that a container runtime may create. */
export async function controlGroupFolders(path: string): Promise<readonly string[]> {
  return [...(await presentControllers()), 'unified'].map((name) => join(MOUNTED, name, path))
}

async function presentControllers(): Promise<readonly string[]> {
  const mounted = await readdir(MOUNTED)
  return CONTROLLERS.filter((name) => mounted.includes(name))
}

/** Copies the parent's CPUs and memory nodes: a new cpuset is empty, and no process can join it. */
async function fillCpuset(mount: string, path: string): Promise<void> {
  const segments = path.split('/').filter((segment) => segment !== '')
  for (const depth of segments.keys()) {
    const folder = join(mount, ...segments.slice(0, depth + 1))
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      if ((await readFile(join(folder, file), 'utf8')).trim() !== '') continue
      await writeFile(join(folder, file), await readFile(join(dirname(folder), file)))
    }
  }
}

/** Sets the CPU shares of the pods' group and of its parents up to the group of this process. */
async function setPodShares(mount: string, path: string): Promise<void> {
  for (let at = path; at !== dirname(at); at = dirname(at)) {
    const folder = join(mount, at)
    if ((await readFile(join(folder, 'cgroup.procs'), 'utf8')) !== '') return
    await writeFile(join(folder, 'cpu.shares'), String(POD_SHARES))
  }
}
