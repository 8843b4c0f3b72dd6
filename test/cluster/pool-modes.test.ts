// The ways by which pools are filled, and the definition of CodePools, which come and go: a release
// goes from one to the other and loses nothing, and nothing is stuck in whatever order they go.
import { readFile } from 'node:fs/promises'
import { beforeAll, expect, test } from '@jest/globals'
import { chartFolder } from '../component/chart-render.ts'
import { waitFor } from '../component/wait-for.ts'
import { findHelm } from '../parts/helm.ts'
import { scriptsOf } from '../parts/runbook-commands.ts'
import { getObject, helm, kubectl, makeNamespace, mustRun, tryRun } from './cluster.ts'
import { startLoad } from './constant-load.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  installDefinitions,
  RELEASE,
  shorten,
  uninstallDefinitions,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 6 * 60_000
const WAIT_MS_MAX = 120_000
const CREATE_EVERY_MS = 1000
const POOL = `${FULL_NAME}-default`
const CRD = 'codepools.curtail.dev'
/** A release whose pods wait for ever. */
const OTHER = 'waiting'

beforeAll(() => ensureRelease(), INSTALL_MS_MAX)

const namesOf = async (...kinds: readonly string[]) =>
  (await kubectl('get', kinds.join(','), '--namespace', RELEASE, '-o', 'name')).trim()
const isThere = async (...named: readonly string[]) =>
  (await tryRun('kubectl', ['get', ...named])).code === 0

interface Pool {
  readonly status?: {
    readonly level?: number
    readonly refills?: number
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

const statusOfPool = async () =>
  (await getObject<Pool>('codepool', POOL, '--namespace', RELEASE)).status ?? {}
const untilReady = () =>
  waitFor(
    'the pool to be ready',
    async () => {
      const { conditions = [] } = await statusOfPool()
      return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
    },
    WAIT_MS_MAX,
  )
const secretNow = () =>
  getObject<{ data: unknown }>('secret', `${FULL_NAME}-code-secret`, '--namespace', RELEASE)

test(
  'from the controller to CronJobs and back: creates go on, and the pool is the same',
  async () => {
    const edge = await edgeUrl()
    const code = await shorten(edge, 'https://example.com/modes')
    const before = { secret: (await secretNow()).data, level: (await statusOfPool()).level ?? 0 }
    const load = startLoad([
      {
        name: 'create',
        everyMs: CREATE_EVERY_MS,
        url: `${edge}/v1/urls`,
        body: () => ({ long_url: 'https://example.com/modes' }),
        right: [201],
      },
    ])
    try {
      await upgradeRelease('--set', 'pools.mode=cron')
      expect(await namesOf('cronjobs')).toBe(`cronjob.batch/${FULL_NAME}-r-default`)
      expect(await namesOf('codepools')).toBe('')
      expect(await isThere('deployment', `${FULL_NAME}-controller`, '-n', RELEASE)).toBe(false)
      await refillNow()
      await upgradeRelease()
    } finally {
      const { counts, faultCount, faults } = await load.stop()
      process.stdout.write(`modes: ${JSON.stringify(counts)}\n`)
      expect([faultCount, faults]).toEqual([0, []])
    }
    expect(await namesOf('cronjobs')).toBe('')
    await untilReady()
    const { level = 0, refills = 0 } = await statusOfPool()
    // It was never low: neither of them had to fill it, and what there was is there.
    expect(refills).toBe(0)
    expect(level).toBeGreaterThan(before.level / 2)
    expect((await secretNow()).data).toEqual(before.secret)
    const followed = await fetch(`${edge}/${code}`, { redirect: 'manual' })
    expect(followed.status).toBe(302)
  },
  TEST_MS_MAX,
)

/** Fills the pool at once, as the page for a pool that is empty says. */
async function refillNow(): Promise<void> {
  const name = 'curtailpoolempty.md'
  const text = await readFile(new URL(`../../docs/runbooks/${name}`, import.meta.url), 'utf8')
  const lines = scriptsOf({ name, text }).filter((line) => line.includes('refill-now'))
  expect(lines).toHaveLength(2)
  await mustRun('sh', ['-ec', [`NS=${RELEASE} R=${FULL_NAME}`, ...lines].join('\n')])
  expect(await kubectl('logs', 'job/refill-now', '--namespace', RELEASE)).toContain('"filled"')
  await kubectl('delete', 'job', 'refill-now', '--namespace', RELEASE)
}

/** Installs a release of which nothing gets ready. */
async function installOther(): Promise<void> {
  await makeNamespace(OTHER)
  const one = { replicas: 1 }
  const image = { repository: 'localhost/curtail', tag: 'test' }
  const envoy = { repository: 'localhost/envoy', tag: 'test' }
  const edge = { ...one, drainSeconds: 1, image: envoy }
  const values = {
    dnsSeconds: 1,
    ...{ image, edge, ratelimit: one, create: one, redirect: one, controller: one },
    cassandra: { mode: 'external', external: { contactPoints: ['nowhere.invalid'] } },
    cache: { mode: 'external', external: { url: 'redis://nowhere.invalid' } },
    counters: { mode: 'external', external: { url: 'nowhere.invalid:6379' } },
  }
  const args = ['install', OTHER, chartFolder, '--namespace', OTHER, '--values', '-']
  await mustRun(await findHelm(4), args, JSON.stringify(values))
}

test(
  'the chart of the definition goes first: the definition stays, and a release goes after it',
  async () => {
    await installOther()
    try {
      await uninstallDefinitions()
      expect(await isThere('crd', CRD)).toBe(true)
      expect(await isThere('codepool', `${OTHER}-curtail-default`, '-n', OTHER)).toBe(true)
      await helm(4, 'uninstall', OTHER, '--namespace', OTHER, '--wait', '--timeout', '2m')
      expect((await kubectl('get', 'codepools', '-n', OTHER, '-o', 'name')).trim()).toBe('')
    } finally {
      await kubectl('delete', 'namespace', OTHER, '--wait=false')
      await installDefinitions()
    }
  },
  TEST_MS_MAX,
)

test(
  'the definition itself is deleted under a release: it serves on, and all comes back with both',
  async () => {
    const edge = await edgeUrl()
    try {
      await kubectl('delete', 'crd', CRD, '--timeout=60s')
      await shorten(edge, 'https://example.com/no-definition')
      const told = async () => {
        const logs = ['logs', '-n', RELEASE, '-l', 'app.kubernetes.io/component=controller']
        return (await kubectl(...logs, '--tail', '100')).includes('"resource":"codepools"')
      }
      await waitFor('the controllers to tell of it', told, WAIT_MS_MAX)
      await expect(upgradeRelease()).rejects.toThrow(/helm upgrade --install curtail-crds/)
    } finally {
      await installDefinitions()
      await upgradeRelease()
    }
    await untilReady()
    expect((await statusOfPool()).refills).toBe(0)
  },
  TEST_MS_MAX,
)
