// Switches a release between the controller and CronJobs for refills, and deletes the chart of the
// CodePool CRD or the CRD itself: no request fails, no code is lost, no deletion hangs.
import { readFile } from 'node:fs/promises'
import { beforeAll, expect, test } from '@jest/globals'
import { chartFolder } from '../kit/chart/chart-render.ts'
import { waitFor } from '../kit/wait-for.ts'
import { findHelm } from '../dependencies/helm.ts'
import { scriptsOf } from '../kit/runbook-commands.ts'
import { getObject, helm, kubectl, createNamespace, mustRun, tryRun } from './cluster.ts'
import { startLoad } from './request-load.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  installDefinitions,
  RELEASE,
  createLink,
  uninstallDefinitions,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 6 * 60_000
const WAIT_MS_MAX = 120_000
const CREATE_EVERY_MS = 1000
const POOL = `${FULL_NAME}-default`
const CRD = 'codepools.curtail.dev'
/** A release whose pods never get ready. */
const OTHER = 'never-ready'

beforeAll(() => ensureRelease(), INSTALL_MS_MAX)

const listNames = async (...kinds: readonly string[]) =>
  (await kubectl('get', kinds.join(','), '--namespace', RELEASE, '-o', 'name')).trim()
const exists = async (...args: readonly string[]) =>
  (await tryRun('kubectl', ['get', ...args])).code === 0

interface Pool {
  readonly status?: {
    readonly level?: number
    readonly refills?: number
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

const poolStatus = async () =>
  (await getObject<Pool>('codepool', POOL, '--namespace', RELEASE)).status ?? {}
const waitUntilPoolReady = () =>
  waitFor(
    'the pool to be ready',
    async () => {
      const { conditions = [] } = await poolStatus()
      return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
    },
    WAIT_MS_MAX,
  )
const codeSecret = () =>
  getObject<{ data: unknown }>('secret', `${FULL_NAME}-code-secret`, '--namespace', RELEASE)

test(
  'switching to CronJobs and back to the controller: no create fails, the pool keeps its codes',
  async () => {
    const edge = await edgeUrl()
    const code = await createLink(edge, 'https://example.com/modes')
    const before = { secret: (await codeSecret()).data, level: (await poolStatus()).level ?? 0 }
    const load = startLoad([
      {
        name: 'create',
        everyMs: CREATE_EVERY_MS,
        url: `${edge}/v1/urls`,
        body: () => ({ long_url: 'https://example.com/modes' }),
        expectedStatuses: [201],
      },
    ])
    try {
      await upgradeRelease('--set', 'pools.mode=cron')
      expect(await listNames('cronjobs')).toBe(`cronjob.batch/${FULL_NAME}-r-default`)
      expect(await listNames('codepools')).toBe('')
      expect(await exists('deployment', `${FULL_NAME}-controller`, '-n', RELEASE)).toBe(false)
      await refillNow()
      await upgradeRelease()
    } finally {
      const { counts, failureCount, failures } = await load.stop()
      process.stdout.write(`modes: ${JSON.stringify(counts)}\n`)
      expect([failureCount, failures]).toEqual([0, []])
    }
    expect(await listNames('cronjobs')).toBe('')
    await waitUntilPoolReady()
    const { level = 0, refills = 0 } = await poolStatus()
    // The pool was never low, so no refill was due, and it kept its codes.
    expect(refills).toBe(0)
    expect(level).toBeGreaterThan(before.level / 2)
    expect((await codeSecret()).data).toEqual(before.secret)
    const response = await fetch(`${edge}/${code}`, { redirect: 'manual' })
    expect(response.status).toBe(302)
  },
  TEST_MS_MAX,
)

/** Refills the pool immediately with the commands of the runbook for an empty pool. */
async function refillNow(): Promise<void> {
  const name = 'curtailpoolempty.md'
  const text = await readFile(new URL(`../../docs/runbooks/${name}`, import.meta.url), 'utf8')
  const lines = scriptsOf({ name, text }).filter((line) => line.includes('refill-now'))
  expect(lines).toHaveLength(2)
  await mustRun('sh', ['-ec', [`NS=${RELEASE} R=${FULL_NAME}`, ...lines].join('\n')])
  expect(await kubectl('logs', 'job/refill-now', '--namespace', RELEASE)).toContain('"filled"')
  await kubectl('delete', 'job', 'refill-now', '--namespace', RELEASE)
}

/** Installs a release whose pods never get ready. */
async function installOther(): Promise<void> {
  await createNamespace(OTHER)
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
  'uninstalling the CRD chart first keeps the CRD, and the release can be uninstalled after it',
  async () => {
    await installOther()
    try {
      await uninstallDefinitions()
      expect(await exists('crd', CRD)).toBe(true)
      expect(await exists('codepool', `${OTHER}-curtail-default`, '-n', OTHER)).toBe(true)
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
  'a release serves while the CRD is deleted, and recovers when both charts are upgraded',
  async () => {
    const edge = await edgeUrl()
    try {
      await kubectl('delete', 'crd', CRD, '--timeout=60s')
      await createLink(edge, 'https://example.com/no-definition')
      const isLogged = async () => {
        const logs = ['logs', '-n', RELEASE, '-l', 'app.kubernetes.io/component=controller']
        return (await kubectl(...logs, '--tail', '100')).includes(
          `"resource":"codepools in ${RELEASE}"`,
        )
      }
      await waitFor('the controllers to log the missing CRD', isLogged, WAIT_MS_MAX)
      await expect(upgradeRelease()).rejects.toThrow(/helm upgrade --install curtail-crds/)
    } finally {
      await installDefinitions()
      await upgradeRelease()
    }
    await waitUntilPoolReady()
    expect((await poolStatus()).refills).toBe(0)
  },
  TEST_MS_MAX,
)
