// A real API server with its own etcd and without a node: CRDs, validation rules, server-side apply
// and authorization work; no Job runs, and no garbage is collected.
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKubeApi, type KubeApi } from '../../src/kube/api.ts'
import { systemScheduler } from '../../src/kube/scheduler.ts'
import { createTransport } from '../../src/kube/transport.ts'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import { freePort } from './free-ports.ts'
import { findKubernetes } from './kubernetes.ts'

/** A running API server. */
export interface KubeApiserver {
  /** A client with the permissions of a user; `admin` has all permissions. */
  as(user: string, metrics?: Metrics): KubeApi
  /** The path of a kubeconfig of `admin`, for kubectl and helm. */
  readonly kubeconfig: string
  /** Writes a kubeconfig of a user, with a namespace as its default. */
  writeKubeconfig(path: string, user: keyof typeof USERS, namespace: string): Promise<void>
  /** The folder of kubectl. */
  readonly programs: string
  /** Compacts the history in etcd up to the current version. */
  compact(): Promise<void>
  /** Kills the API server; etcd keeps running. */
  kill(): Promise<void>
  /** Starts a killed API server on the same port and etcd; resolves once it is ready. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** The users and their groups. */
const USERS = { admin: 'system:masters', controller: 'controllers' } as const
const START_MS_MAX = 120_000
const SERVICES = '10.0.0.0/24'

/** Starts an API server; `log` receives the progress of a build. Throws the end of its log. */
export async function startKubeApiserver(log: (line: string) => void): Promise<KubeApiserver> {
  const programs = await findKubernetes(log)
  const folder = await mkdtemp(join(tmpdir(), 'curtail-apiserver-'))
  const [clientPort, peerPort, port] = [await freePort(), await freePort(), await freePort()]
  const children: ChildProcess[] = []
  const start = (name: string, args: readonly string[]) => {
    const logFile = openSync(join(folder, `${name}.log`), 'a')
    const line = ['setpriv', '--pdeathsig', 'KILL', join(programs, name), ...args]
    const [command = '', ...rest] = line
    const child = spawn(command, rest, { stdio: ['ignore', logFile, logFile], cwd: folder })
    closeSync(logFile)
    children.push(child)
    return child
  }
  const transports: { close: () => void }[] = []
  const stop = async () => {
    for (const { close } of transports) close()
    for (const child of children.reverse()) await kill(child)
    await rm(folder, { recursive: true, force: true })
  }
  const as: KubeApiserver['as'] = (user, metrics = createMetrics()) => {
    const server = `https://127.0.0.1:${port}`
    const headers = { Authorization: `Bearer token-of-${user}` }
    const transport = createTransport({
      namespace: 'n',
      read: () => Promise.resolve({ server, headers, tls: { rejectUnauthorized: false } }),
      invalidate: () => undefined,
    })
    transports.push(transport)
    return createKubeApi({ transport, scheduler: systemScheduler, metrics })
  }
  try {
    await writeFiles(folder)
    const etcd = `http://127.0.0.1:${clientPort}`
    start('etcd', etcdArguments(folder, etcd, `http://127.0.0.1:${peerPort}`))
    const startServer = () => start('kube-apiserver', apiserverArguments(folder, etcd, port))
    let server = startServer()
    const admin = as('admin')
    await waitUntilReady(admin, children)
    const kubeconfig = join(folder, 'kubeconfig')
    const writeKubeconfig: KubeApiserver['writeKubeconfig'] = (path, user, namespace) =>
      writeFile(path, kubeconfigOf(port, user, namespace))
    await writeKubeconfig(kubeconfig, 'admin', 'default')
    return {
      ...{ as, kubeconfig, writeKubeconfig, programs, stop },
      compact: () => compactEtcd(etcd),
      kill: () => kill(server),
      async restart() {
        server = startServer()
        await waitUntilReady(admin, children)
      },
    }
  } catch (error) {
    const lines = await readFile(join(folder, 'kube-apiserver.log'), 'utf8').catch(() => '')
    await stop()
    throw new Error(`the API server does not start: ${lines.slice(-2000)}`, { cause: error })
  }
}

async function writeFiles(folder: string): Promise<void> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  await writeFile(join(folder, 'accounts.key'), privateKey)
  await writeFile(join(folder, 'accounts.pub'), publicKey)
  const lines = Object.entries(USERS).map(
    ([user, group]) => `token-of-${user},${user},${user},"${group}"`,
  )
  await writeFile(join(folder, 'tokens.csv'), `${lines.join('\n')}\n`)
}

function kubeconfigOf(port: number, user: string, namespace: string): string {
  const server = `https://127.0.0.1:${port}`
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: user, user: { token: `token-of-${user}` } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user, namespace } }],
    'current-context': 'c',
  })
}

function etcdArguments(folder: string, client: string, peer: string): string[] {
  return [
    ...['--name', 'one', '--data-dir', join(folder, 'etcd'), '--unsafe-no-fsync'],
    ...['--listen-client-urls', client, '--advertise-client-urls', client, '--log-level', 'warn'],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
    ...['--initial-cluster', `one=${peer}`],
  ]
}

function apiserverArguments(folder: string, etcd: string, port: number): string[] {
  return [
    ...['--etcd-servers', etcd, '--secure-port', String(port), '--bind-address', '127.0.0.1'],
    ...['--cert-dir', join(folder, 'certificates'), '--service-cluster-ip-range', SERVICES],
    ...['--token-auth-file', join(folder, 'tokens.csv'), '--authorization-mode', 'RBAC'],
    ...['--disable-admission-plugins', 'ServiceAccount', '--profiling=false'],
    ...['--service-account-issuer', 'https://kubernetes.default.svc'],
    ...['--service-account-key-file', join(folder, 'accounts.pub')],
    ...['--service-account-signing-key-file', join(folder, 'accounts.key')],
  ]
}

async function compactEtcd(etcd: string): Promise<void> {
  const call = async (path: string, body: object) => {
    const response = await fetch(etcd + path, { method: 'POST', body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`etcd returned ${response.status}: ${await response.text()}`)
    return (await response.json()) as { header: { revision: string } }
  }
  const { header } = await call('/v3/maintenance/status', {})
  await call('/v3/kv/compaction', { revision: header.revision })
}

async function waitUntilReady(api: KubeApi, children: readonly ChildProcess[]): Promise<void> {
  const endMs = performance.now() + START_MS_MAX
  for (;;) {
    try {
      await api.call({ method: 'GET', path: '/api/v1/namespaces/default', msMax: 5000 })
      return
    } catch (error) {
      const hasExited = children.some(({ exitCode }) => exitCode !== null)
      if (hasExited || performance.now() > endMs) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/** Kills a process; resolves once it has exited. */
function kill(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) {
      resolve()
      return
    }
    child.on('exit', () => {
      resolve()
    })
    child.kill('SIGKILL')
  })
}
