// The commands of README.md and of the chart's notes, run as printed and in order on a fresh
// installation: each succeeds and has the described effect, and no container logs a warning.
import { beforeAll, expect, test } from '@jest/globals'
import type { CodePool } from '../../src/kube/code-pool/code-pool.ts'
import { commandsOf } from '../kit/chart/notes.ts'
import { waitFor } from '../kit/wait-for.ts'
import { createNamespace, getObject, helm, kubectl, mustRun } from './cluster.ts'
import { installByReadme } from './install-by-readme.ts'
import { DEFINITIONS_NAMESPACE, FULL_NAME, INSTALL_MS_MAX, RELEASE } from './release.ts'
import { runInOrder } from './run-in-order.ts'

const TEST_MS_MAX = INSTALL_MS_MAX + 5 * 60_000
/** A Lease that was not released must expire first. */
const CONDITION_MS_MAX = 60_000
/** Of the first refill and the first rules. The pods may be ready earlier. */
const WORK_MS_MAX = 180_000
/** How long a Redis that cannot be reached after a limiter's start causes no warning. */
const REDIS_START_MS = 60_000

/** The stdout of each command of README.md. */
let installed: ReadonlyMap<string, string>
/** The command lines of the notes, in order. */
let commands: readonly string[]
let notes: string

beforeAll(async () => {
  const uninstall = async (release: string, namespace: string) => {
    const bounds = ['--ignore-not-found', '--wait', '--timeout', '5m']
    await helm(4, 'uninstall', release, '--namespace', namespace, ...bounds)
  }
  await uninstall(RELEASE, RELEASE)
  await uninstall('curtail-crds', DEFINITIONS_NAMESPACE)
  await createNamespace(RELEASE)
  // Without stored links, the migration and the first refill run too.
  const claim = ['pvc', `data-${FULL_NAME}-cassandra-0`, '--namespace', RELEASE]
  await kubectl('delete', ...claim, '--ignore-not-found')
  installed = await installByReadme()
  notes = await helm(4, 'get', 'notes', RELEASE, '--namespace', RELEASE)
  commands = commandsOf(notes)
}, 2 * INSTALL_MS_MAX)

test('the commands of README.md install both charts and list the pools', () => {
  const outputs = [...installed.values()]
  expect(outputs).toHaveLength(3)
  for (const [i, name] of ['curtail-crds', RELEASE].entries()) {
    expect(outputs[i]).toMatch(new RegExp(`^NAME: ${name}\n[^]*STATUS: deployed`))
  }
})

test(
  'every command of the notes succeeds as printed; the first one waits for the pods',
  async () => {
    const { outputOf, count } = await runInOrder(commands)
    expect(outputOf('wait deployment')).toContain('condition met')
    expect(outputOf('helm test')).toContain('Succeeded')
    expect(outputOf('curl -si')).toMatch(/^HTTP\/1\.1 302 .*location: https:\/\/example\.com\//is)
    expect(JSON.parse(outputOf('/admin/pools'))).toContainEqual(
      expect.objectContaining({ pool: 'default', target: 200_000 }),
    )
    expect(outputOf('-c wait-for-schema')).toContain('schema present')
    expect(outputOf('component=migrate')).toContain('migrated')
    const getPools = commands.find((command) => command.endsWith('get codepools')) ?? 'false'
    // A pool has no conditions before a controller leads and reconciles it.
    const isReady = async () =>
      /shop-curtail-default +\d+ +200000 .*True/.test(await mustRun('sh', ['-c', getPools]))
    await waitFor(getPools, isReady, CONDITION_MS_MAX)
    expect(outputOf('describe codepools')).toContain('shop-curtail-default')
    expect(outputOf('describe pods')).toMatch(/^Name: +shop-curtail-create-/m)
    expect(outputOf('component=controller')).toContain('"role":"controller"')
    expect(JSON.parse(outputOf('/readyz'))).toMatchObject({ status: 'ready' })
    expect(count).toBeGreaterThan(12)
  },
  TEST_MS_MAX,
)

/** Curtail's containers, including init containers and Jobs, and what each logs last at a start. */
const startMessages: readonly (readonly [string, string])[] = [
  ['controller', 'ready'],
  ['create', 'ready'],
  ['drain', 'ready'],
  ['migrate', 'migrated'],
  ['ratelimit', 'rules loaded'],
  ['redirect', 'ready'],
  ['refill', 'filled'],
  ['wait-for-codes', 'pool filled'],
  ['wait-for-schema', 'schema present'],
]

interface ContainerStatus {
  readonly name: string
  readonly image: string
  readonly restartCount: number
}
interface Pod {
  readonly status: {
    readonly initContainerStatuses?: readonly ContainerStatus[]
    readonly containerStatuses?: readonly ContainerStatus[]
  }
}

/** Each of Curtail's containers, as `name restarts`. */
async function countRestarts(): Promise<readonly string[]> {
  const { items } = await getObject<{ items: readonly Pod[] }>('pods', '--namespace', RELEASE)
  const ofPod = ({ status }: Pod) => [
    ...(status.initContainerStatuses ?? []),
    ...(status.containerStatuses ?? []),
  ]
  const ours = items.flatMap(ofPod).filter(({ image }) => image.includes('/curtail:'))
  return ours.map(({ name, restartCount }) => `${name} ${restartCount}`)
}

interface LogLine {
  readonly pod: string
  readonly container: string
  readonly line: string
}

/** The log lines of all containers of the release, in order for each container. */
async function readLogs(): Promise<readonly LogLine[]> {
  const of = ['--namespace', RELEASE, '-l', `app.kubernetes.io/instance=${RELEASE}`]
  const all = ['--all-containers', '--prefix', '--tail=-1', '--max-log-requests=50']
  const lines = (await kubectl('logs', ...of, ...all)).split('\n')
  return lines.flatMap((text) => {
    const [, pod, container, line] = /^\[pod\/([^/]+)\/([^\]]+)\] (.*)$/.exec(text) ?? []
    if (pod === undefined || container === undefined || line === undefined) return []
    return [{ pod, container, line }]
  })
}

function isLogged(logs: readonly LogLine[], name: string, message: string): boolean {
  const field = `"msg":"${message}"`
  return logs.some(({ container, line }) => container === name && line.includes(field))
}

/** Whether the controller has completed the first refill, and limiters apply its policies. */
async function isWorkDone(): Promise<boolean> {
  const pool = ['codepool', `${FULL_NAME}-default`, '--namespace', RELEASE]
  const { status } = await getObject<Pick<CodePool, 'status'>>(...pool)
  if (status?.lastRefill?.outcome !== 'Succeeded') return false
  const logs = await readLogs()
  const work = ['refill started', 'refill completed', 'policy programmed']
  return work.every((message) => isLogged(logs, 'controller', message))
}

/**
 * The controller logs each write that it retries: an API server that did not respond, or was
 * overloaded, is a real warning. A conflict may follow a write whose response was lost.
 */
const RETRIED_WRITE = new RegExp(
  '^{"level":"warn",.*"status":(?:0|409|429|5[0-9]{2}),' +
    '.*"msg":"(?:reconcile failed|failed to (?:acquire|renew) the Lease)"}$',
)
const REDIS_UNAVAILABLE = /^{"level":"warn",.*"msg":"Redis unavailable"}$/

/** Whether a line that is not `info` is correct on a machine that is slow. */
function isOfSlowMachine({ pod, container, line }: LogLine, logs: readonly LogLine[]): boolean {
  if (container === 'controller') return RETRIED_WRITE.test(line)
  if (container !== 'ratelimit' || !REDIS_UNAVAILABLE.test(line)) return false
  // Redis starts at the same time as the limiters.
  const first = logs.find((one) => one.pod === pod && one.container === container)
  return timeOf(line) - timeOf(first?.line ?? line) > REDIS_START_MS
}

function timeOf(line: string): number {
  return Date.parse((JSON.parse(line) as { time: string }).time)
}

test(
  'no container of Curtail has restarted or logged a warning; each logs its start',
  async () => {
    await waitFor('the first refill and the first rules', isWorkDone, WORK_MS_MAX)
    const names = startMessages.map(([name]) => name)
    expect([...new Set(await countRestarts())].sort()).toEqual(names.map((name) => `${name} 0`))
    const logs = (await readLogs()).filter(({ container }) => names.includes(container))
    const others = logs.filter(({ line }) => !line.startsWith('{"level":"info",'))
    expect(others.filter((one) => !isOfSlowMachine(one, logs))).toEqual([])
    const missing = startMessages.filter(([name, message]) => !isLogged(logs, name, message))
    expect(missing).toEqual([])
  },
  TEST_MS_MAX,
)

test('the notes warn of values for evaluation only and list what an uninstall keeps', () => {
  expect(notes).toContain('baseUrl is http://localhost:8080')
  expect(notes).toContain('cassandra.mode is bundled')
  expect(notes).toContain('the Secret shop-curtail-code-secret')
  expect(notes).toContain('data-shop-curtail-cassandra-*')
})
