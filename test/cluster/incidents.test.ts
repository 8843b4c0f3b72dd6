// Every alert in a real incident: a fault breaks the release, the alert fires, the commands of its
// runbook repair the release. The durations in the alert rules are divided. Takes about twenty
// minutes: `npm run test:cluster -- incidents`.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import { waitFor } from '../kit/wait-for.ts'
import { scriptsOf } from '../kit/runbook-commands.ts'
import { startLoad } from './request-load.ts'
import type { IncidentContext } from './incident.ts'
import { incidents } from './incidents.ts'
import { createRunbookRunner, readPages } from './runbook-runner.ts'
import {
  edgeUrl,
  ensureRelease,
  INSTALL_MS_MAX,
  createLink,
  waitForAllReady,
  upgradeRelease,
} from './release.ts'
import { type AlertWatch, watchAlerts } from './watch-alerts.ts'

const TEST_MS_MAX = 10 * 60_000
const FIRE_MS_MAX = 180_000
const CLEAR_MS_MAX = 240_000
const RECOVERY_MS_MAX = 120_000
const REDIRECT_EVERY_MS = 50
const CREATE_EVERY_MS = 1000
/** Slow burn rates cover hours and days; rules that cover minutes need some seconds of samples. */
const [DIVIDE, DIVIDE_SLOW] = [60, 600]

const pages = await readPages()
let context: IncidentContext
/** The code of a link that clients resolve during all incidents. */
let code: string
let watches: { normal: AlertWatch; slow: AlertWatch }
/** The clean-ups in the order in which they run. */
const cleanUps: Stop[] = []

beforeAll(async () => {
  await ensureRelease()
  cleanUps.unshift(() => upgradeRelease())
  const edge = await edgeUrl()
  code = await createLink(edge, 'https://example.com/incidents')
  const runner = await createRunbookRunner()
  cleanUps.unshift(() => runner.close())
  context = { edge, runner }
  const startWatch = async (divide: number) => {
    const watch = await watchAlerts(divide)
    cleanUps.unshift(() => watch.stop())
    return watch
  }
  watches = { normal: await startWatch(DIVIDE), slow: await startWatch(DIVIDE_SLOW) }
  const load = startLoad([
    { name: 'redirect', everyMs: REDIRECT_EVERY_MS, url: `${edge}/${code}`, expectedStatuses: [] },
    {
      ...{ name: 'create', everyMs: CREATE_EVERY_MS, url: `${edge}/v1/urls`, expectedStatuses: [] },
      body: () => ({ long_url: 'https://example.com/' }),
    },
  ])
  cleanUps.unshift(async () => {
    const { counts } = await load.stop()
    process.stdout.write(`incidents: ${JSON.stringify(counts)}\n`)
  })
}, INSTALL_MS_MAX)

afterAll(() => stopInTurn(cleanUps), TEST_MS_MAX)

const watchOf = (alert: string) => (alert.endsWith('BurnSlow') ? watches.slow : watches.normal)

function log(line: string): void {
  process.stdout.write(`${new Date().toISOString()} ${line}\n`)
}

test.each(incidents)(
  '$title: $alerts',
  async ({ title, alerts, breakRelease, remedy }) => {
    log(title)
    for (const alert of alerts) await watchOf(alert).untilClear(alert, CLEAR_MS_MAX)
    const cleanUp = await breakRelease(context)
    try {
      for (const alert of alerts) await watchOf(alert).untilFiring(alert, FIRE_MS_MAX)
      log(`firing: ${alerts.join(', ')}`)
      for (const { line, placeholders } of remedy) {
        const { code: exitCode, stderr } = await context.runner.run(line, await placeholders?.())
        expect([line, exitCode, stderr]).toEqual([line, 0, expect.any(String)])
      }
      // Scrapes first: other alerts also clear when their pods are not scraped.
      for (const alert of ['CurtailPodNotScraped', ...alerts]) {
        await watchOf(alert).untilClear(alert, CLEAR_MS_MAX)
      }
      log('clear')
    } finally {
      await cleanUp()
    }
    await waitForAllReady()
    const { edge } = context
    await waitFor(
      'the link to redirect',
      async () => (await fetch(`${edge}/${code}`, { redirect: 'manual' })).status === 302,
      RECOVERY_MS_MAX,
    )
    await createLink(edge, 'https://example.com/recovered')
  },
  TEST_MS_MAX,
)

test('each alert has an incident, and the runbooks contain every command of the remedies', () => {
  const alerts = incidents.flatMap((incident) => incident.alerts.map((one) => one.toLowerCase()))
  const names = pages.map(({ name }) => name.replace('.md', ''))
  expect([...new Set(alerts)].sort()).toEqual(names)
  const printed = new Set(pages.flatMap(scriptsOf))
  const used = incidents.flatMap(({ remedy }) => remedy.map(({ line }) => line))
  expect(used.filter((line) => !printed.has(line))).toEqual([])
})
