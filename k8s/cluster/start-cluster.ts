// Starts one Kubernetes node in its own Linux namespaces, and stops it and removes everything. The
// machine's network, mounts and settings stay unchanged. Needs root and Debian's containerd.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { writeImage, writeLayer } from '../image/archive.ts'
import { controlGroupFolders, createControlGroups } from './control-groups.ts'

const run = promisify(execFile)

const READY_MS_MAX = 180_000
const RUN_MS_MAX = 120_000
const POLL_MS = 200
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
const LOG_CHARACTERS_MAX = 1500
const VOLUMES = 16
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** A cluster whose node and DNS are ready. */
export interface Cluster {
  /** The process whose network, mount and PID namespaces the cluster uses. */
  readonly pid: number
  readonly kubeconfig: string
  /** Logs of the components, and of pods below `pods`. */
  readonly logs: string
  /** Runs kubectl; resolves to its stdout. Throws its output if it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>
  /**
   * Imports the images of an archive; pods must use them with `imagePullPolicy: Never`. `name` is
   * that of the images of an archive that only contains their tags.
   */
  load(archive: string, name?: string): Promise<void>
  /** Stops the cluster, and removes everything that was created for it. */
  stop(): Promise<void>
}

/** Starts a cluster with the programs in that folder. Throws the tails of the components' logs. */
export async function startCluster(programs: string): Promise<Cluster> {
  if (process.getuid?.() !== 0)
    throw new Error('the test cluster needs root: it creates Linux namespaces')
  const state = await mkdtemp(join(tmpdir(), 'curtail-cluster-'))
  const cleaner = await prepareCleanUp(state)
  try {
    await writeNodeImages(programs, state)
    const node = startNode(programs, { state, group: cleaner.group })
    await writeFile(join(state, 'pid'), String(await firstProcess(node)))
    const cluster = await describeCluster({ programs, state, stop: cleaner.clean })
    await waitUntilReady(cluster, node)
    return cluster
  } catch (error) {
    const logs = await readLogTails(state)
    await cleaner.clean()
    throw new Error(`Cannot start the test cluster: ${logs}`, { cause: error })
  }
}

/** Creates the control groups, and a process that removes them when this process exits. */
async function prepareCleanUp(
  state: string,
): Promise<{ group: string; clean: () => Promise<void> }> {
  const group = await createControlGroups(`curtail-cluster-${process.pid}`)
  const args = [state, ...(await controlGroupFolders(group))]
  const child = spawn(file('clean.sh'), args, {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  })
  const exited = once(child, 'exit')
  exited.catch(() => undefined) // `clean` throws it
  return {
    group,
    async clean() {
      child.stdin.end()
      const [code] = (await exited) as [number | null]
      if (code !== 0) throw new Error('Cannot remove the test cluster completely: see above')
    },
  }
}

/** Writes the images that the node itself needs; each contains a single program. */
async function writeNodeImages(programs: string, state: string): Promise<void> {
  const folder = join(state, 'images')
  for (const [program, user] of [
    ['pause', '65535'],
    ['coredns', '65532'],
  ] as const) {
    const root = join(folder, program)
    await mkdir(root, { recursive: true })
    await copyFile(join(programs, program), join(root, program))
    const layer = await writeLayer(root, join(folder, `${program}.layer`))
    const config = { Entrypoint: [`/${program}`], User: user }
    const names = [`localhost/${program}:1`]
    const image = { architecture: 'amd64', config, layers: [layer] } as const
    await writeImage(image, names, join(folder, `${program}.tar`))
    await rm(root, { recursive: true })
  }
}

/** Starts the cluster's init process; the cluster stops when it or this process exits. */
function startNode(
  programs: string,
  { state, group }: { state: string; group: string },
): ChildProcess {
  const namespaces = ['--net', '--mount', '--uts', '--ipc', '--fork', '--pid', '--mount-proc']
  const args = ['--pdeathsig', 'KILL', 'unshare', ...namespaces, '--kill-child']
  const node = [file('node.sh'), programs, state, group, process.execPath]
  const env = { ...process.env, VOLUMES: String(VOLUMES) }
  const child = spawn('setpriv', [...args, ...node], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    env,
  })
  child.on('error', () => undefined) // `waitUntilReady` detects the exit
  return child
}

/** The pid of the cluster's init process, in the PID namespace of this process. */
async function firstProcess(node: ChildProcess): Promise<number> {
  const pid = String(node.pid)
  for (let i = 0; i < 100; i++) {
    const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
    const child = Number(text.trim().split(' ')[0])
    if (child > 0) return child
    await sleep(POLL_MS / 4)
  }
  throw new Error('unshare has started no process')
}

async function describeCluster(given: {
  programs: string
  state: string
  stop: () => Promise<void>
}): Promise<Cluster> {
  const { programs, state, stop } = given
  const pid = Number(await readFile(join(state, 'pid'), 'utf8'))
  const kubeconfig = join(state, 'kubeconfig')
  const inside = ['--target', String(pid), '--net']
  const options = { timeout: RUN_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }
  return {
    pid,
    kubeconfig,
    logs: join(state, 'node', 'log'),
    stop,
    async kubectl(args, input) {
      const command = [join(programs, 'kubectl'), '--kubeconfig', kubeconfig, ...args]
      const running = run('nsenter', [...inside, '--', ...command], options)
      running.child.stdin?.on('error', () => undefined) // the exit code reports the failure
      running.child.stdin?.end(input)
      return (await running).stdout
    },
    async load(archive, name) {
      const flags = name === undefined ? [] : ['--base-name', name]
      const wanted = ['ctr', '--namespace', 'k8s.io', 'images', 'import', ...flags, archive]
      await run('nsenter', [...inside, '--mount', '--pid', '--', ...wanted], options)
    },
  }
}

async function waitUntilReady(cluster: Cluster, node: ChildProcess): Promise<void> {
  const endMs = performance.now() + READY_MS_MAX
  let stderr = ''
  node.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-LOG_CHARACTERS_MAX)
  })
  /** Retries a kubectl command until it succeeds. */
  const retryUntilSuccess = async (args: readonly string[], input?: string) => {
    for (;;) {
      const fault = await cluster.kubectl(args, input).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (fault === undefined) return
      if (node.exitCode !== null) throw new Error(`the node has exited: ${stderr}`)
      const what = `kubectl ${args.join(' ')}`
      if (performance.now() > endMs) throw new Error(`timed out: ${what}`, { cause: fault })
      await sleep(POLL_MS)
    }
  }
  const manifests = await readFile(file('manifests.yaml'), 'utf8')
  await retryUntilSuccess(
    ['apply', '--server-side', '-f', '-'],
    `${manifests}---\n${renderVolumes()}`,
  )
  await retryUntilSuccess(['wait', 'node/node1', '--for=condition=Ready', '--timeout=20s'])
  await retryUntilSuccess(['get', 'serviceaccount', 'default'])
  const names = ['--namespace', 'kube-system', 'rollout', 'status', 'deployment/coredns']
  await retryUntilSuccess([...names, '--timeout=20s'])
}

/** Local volumes, for StatefulSets. */
function renderVolumes(): string {
  const volumes = Array.from({ length: VOLUMES }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `local-${i + 1}` },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'standard',
      local: { path: `/var/lib/volumes/${i + 1}` },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: 'kubernetes.io/hostname', operator: 'In', values: ['node1'] },
              ],
            },
          ],
        },
      },
    },
  }))
  return volumes.map((volume) => JSON.stringify(volume)).join('\n---\n')
}

/** The tail of every component's log. */
async function readLogTails(state: string): Promise<string> {
  const folder = join(state, 'node', 'log', 'components')
  const names = await readdir(folder).catch(() => []) // no component has started
  const tails = await Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8')
      return `${name}:\n${text.slice(-LOG_CHARACTERS_MAX)}`
    }),
  )
  return tails.join('\n')
}
