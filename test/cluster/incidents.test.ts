// Each alert for real: the release is broken in a way that its runbook knows, the alert fires, a
// reader runs what the pages print, and gets it back. Times of the rules are divided. Some twenty
// minutes: `npm run test:cluster -- incidents`.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import { waitFor } from '../component/wait-for.ts'
import { scriptsOf } from '../parts/runbook-commands.ts'
import { startLoad } from './constant-load.ts'
import { incidents, type Scene } from './incidents.ts'
import { createReader, readPages } from './reader.ts'
import {
  edgeUrl,
  ensureRelease,
  INSTALL_MS_MAX,
  shorten,
  untilAllWhole,
  upgradeRelease,
} from './release.ts'
import { type AlertWatch, watchAlerts } from './watch-alerts.ts'

const TEST_MS_MAX = 10 * 60_000
const FIRE_MS_MAX = 180_000
const CLEAR_MS_MAX = 240_000
const BACK_MS_MAX = 120_000
const REDIRECT_EVERY_MS = 50
const CREATE_EVERY_MS = 1000
/** Slow burns look at hours and days; what looks at minutes needs some seconds to count in. */
const [DIVIDE, DIVIDE_SLOW] = [60, 600]

const pages = await readPages()
let scene: Scene
/** Of a link that clients follow all the time. */
let code: string
let watches: { usual: AlertWatch; slow: AlertWatch }
/** Ends what was begun, the last one first. */
const ends: Stop[] = []

beforeAll(async () => {
  await ensureRelease()
  ends.unshift(() => upgradeRelease())
  const edge = await edgeUrl()
  code = await shorten(edge, 'https://example.com/incidents')
  const reader = await createReader()
  ends.unshift(() => reader.end())
  scene = { edge, reader }
  const watching = async (divide: number) => {
    const watch = await watchAlerts(divide)
    ends.unshift(() => watch.stop())
    return watch
  }
  watches = { usual: await watching(DIVIDE), slow: await watching(DIVIDE_SLOW) }
  const load = startLoad([
    { name: 'redirect', everyMs: REDIRECT_EVERY_MS, url: `${edge}/${code}`, right: [] },
    {
      ...{ name: 'create', everyMs: CREATE_EVERY_MS, url: `${edge}/v1/urls`, right: [] },
      body: () => ({ long_url: 'https://example.com/' }),
    },
  ])
  ends.unshift(async () => {
    const { counts } = await load.stop()
    process.stdout.write(`incidents: ${JSON.stringify(counts)}\n`)
  })
}, INSTALL_MS_MAX)

afterAll(() => stopInTurn(ends), TEST_MS_MAX)

const watchOf = (alert: string) => (alert.endsWith('BurnSlow') ? watches.slow : watches.usual)

function say(line: string): void {
  process.stdout.write(`${new Date().toISOString()} ${line}\n`)
}

test.each(incidents)(
  '$what: $alerts',
  async ({ what, alerts, happens, does }) => {
    say(what)
    for (const alert of alerts) await watchOf(alert).untilClear(alert, CLEAR_MS_MAX)
    const cleanUp = await happens(scene)
    try {
      for (const alert of alerts) await watchOf(alert).untilFiring(alert, FIRE_MS_MAX)
      say(`fires: ${alerts.join(', ')}`)
      for (const { line, how } of does) {
        const { code: exitCode, stderr } = await scene.reader.run(line, await how?.())
        expect([line, exitCode, stderr]).toEqual([line, 0, expect.any(String)])
      }
      // First that every pod is heard: what is not heard is not well.
      for (const alert of ['CurtailPodNotScraped', ...alerts]) {
        await watchOf(alert).untilClear(alert, CLEAR_MS_MAX)
      }
      say('clear')
    } finally {
      await cleanUp()
    }
    await untilAllWhole()
    const { edge } = scene
    await waitFor(
      'the link to be followed',
      async () => {
        const asked = fetch(`${edge}/${code}`, { redirect: 'manual' })
        return (await asked).status === 302
      },
      BACK_MS_MAX,
    )
    await shorten(edge, 'https://example.com/back')
  },
  TEST_MS_MAX,
)

test('each alert has its incident, and what a reader does stands on its pages', () => {
  const alerts = incidents.flatMap((incident) => incident.alerts.map((one) => one.toLowerCase()))
  const names = pages.map(({ name }) => name.replace('.md', ''))
  expect([...new Set(alerts)].sort()).toEqual(names)
  const printed = new Set(pages.flatMap(scriptsOf))
  const done = incidents.flatMap(({ does }) => does.map(({ line }) => line))
  expect(done.filter((line) => !printed.has(line))).toEqual([])
})
