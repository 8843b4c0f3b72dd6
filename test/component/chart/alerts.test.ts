// Alerts, evaluated by promtool: each fires on its problem, clears after the recovery, and has a
// runbook. The rules file of the chart is equal to the generated one.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { alerts, renderRules } from '../../../charts/dashboards/alerts.ts'
import { findPrometheus, runPromtool } from '../../dependencies/prometheus.ts'
import {
  type AlertCase,
  alertCases,
  disconnectedLimiter,
  outdatedList,
} from '../../kit/chart/alert-cases.ts'

const FETCH_MS_MAX = 300_000
const TEST_MS_MAX = 120_000
const FIRING_MINUTES = 20
const RECOVERED_MINUTES = 40
const root = new URL('../../../', import.meta.url)
const rulesFile = new URL('charts/curtail/files/alerts.yaml', root)
const names = alerts.map(({ alert }) => alert)

beforeAll(findPrometheus, FETCH_MS_MAX)

test('the chart contains the generated rules, and promtool accepts them', async () => {
  expect(await readFile(rulesFile, 'utf8')).toBe(renderRules())
  const { code, output } = await runPromtool(['check', 'rules', rulesFile.pathname])
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('SUCCESS') })
})

test('every alert has one case and one runbook', async () => {
  expect(Object.keys(alertCases).sort()).toEqual([...names].sort())
  const pages = (await readdir(new URL('docs/runbooks', root))).filter(
    (page) => page !== 'README.md',
  )
  expect(pages.sort()).toEqual(names.map((name) => `${name.toLowerCase()}.md`).sort())
  for (const { alert, severity } of alerts) {
    const page = new URL(`docs/runbooks/${alert.toLowerCase()}.md`, root)
    const runbook = await readFile(page, 'utf8')
    expect(runbook).toContain(`# ${alert}`)
    expect(runbook).toContain(severity)
    expect(runbook.split('\n').filter((line) => line.startsWith('## '))).toEqual([
      '## Meaning',
      '## Diagnosis',
      '## Mitigation',
    ])
    expect(runbook).toMatch(/```/)
  }
})

test(
  'every alert fires on its problem, and clears after the recovery',
  async () => {
    const failed = await runCases(alertCases)
    expect(failed).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'the alert on slow redirects also fires if bucket bounds have the suffix .0 of Prometheus 3',
  async () => {
    const { series, ...rest } = alertCases.CurtailRedirectBurnFast
    const withDotZero = series.map((one) => ({
      ...one,
      series: one.series.replace('le="100"', 'le="100.0"'),
    }))
    expect(withDotZero).not.toEqual(series)
    expect(await runCases({ CurtailRedirectBurnFast: { ...rest, series: withDotZero } })).toEqual(
      [],
    )
  },
  TEST_MS_MAX,
)

/** Cases in which series that an expression adds up are absent. */
const absent: readonly (readonly [title: string, cases: Readonly<Record<string, AlertCase>>])[] = [
  [
    'on failed creates without a create pod',
    withSeriesOf('CurtailCreateBurnFast', (series) =>
      series
        .filter((one) => one.series.includes('rq_xx'))
        .map((one) => ({ ...one, firing: '0+10000x' })),
    ),
  ],
  [
    'on the limiter if no call has succeeded since the start of the edge',
    withSeriesOf('CurtailLimiterUnavailable', (series) =>
      series.filter((one) => one.series.includes('ratelimit_error')),
    ),
  ],
  [
    'on the leader without a scraped controller pod',
    withSeriesOf('CurtailControllerWithoutLeader', (series) =>
      series.map((one) => ({ ...one, firing: '1x5 _x' })),
    ),
  ],
  [
    'on policies if a limiter that the controller does not know is disconnected',
    { CurtailPoliciesNotProgrammed: disconnectedLimiter },
  ],
  ['on lists if a pod has another list', { CurtailListNotApplied: outdatedList }],
]

test.each(absent)(
  'the alert %s fires, and clears after the recovery',
  async (_, cases) => {
    expect(await runCases(cases)).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'the test of alerts detects an alert that does not fire',
  async () => {
    const none: AlertCase = { series: [{ series: 'nothing', firing: '0x', recovered: '0x' }] }
    expect(await runCases({ CurtailPoolEmpty: none })).not.toEqual([])
  },
  TEST_MS_MAX,
)

/** The case of an alert, with changed series. */
function withSeriesOf(
  alert: keyof typeof alertCases,
  change: (series: AlertCase['series']) => AlertCase['series'],
): Readonly<Record<string, AlertCase>> {
  const alertCase: AlertCase = alertCases[alert]
  return { [alert]: { ...alertCase, series: change(alertCase.series) } }
}

/** Runs the cases with promtool. Returns the failures that it reports. */
async function runCases(cases: Readonly<Record<string, AlertCase>>): Promise<string[]> {
  const steps = new Set(Object.values(cases).map(stepOf))
  const failed = await Promise.all(
    [...steps].map((step) => {
      const ofStep = Object.entries(cases).filter(([, one]) => stepOf(one) === step)
      return runCasesOfStep(step, ofStep)
    }),
  )
  return failed.flat()
}

const stepOf = ({ stepMinutes = 1 }: AlertCase) => stepMinutes

async function runCasesOfStep(step: number, cases: [string, AlertCase][]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-alerts-'))
  try {
    const file = {
      rule_files: [rulesFile.pathname],
      // Recording rules first: by default promtool evaluates groups in any order.
      group_eval_order: ['RELEASE-burn-rates', 'RELEASE-alerts'],
      evaluation_interval: `${String(step)}m`,
      tests: cases.map(([alert, one]) => testOf(alert, one)),
    }
    const path = join(folder, 'tests.yaml')
    await writeFile(path, JSON.stringify(file))
    const { code, output } = await runPromtool(['test', 'rules', path])
    return code === 0 ? [] : output.split('\n')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function testOf(alert: string, alertCase: AlertCase): object {
  const { firingMinutes = FIRING_MINUTES, recoveredMinutes = RECOVERED_MINUTES, series } = alertCase
  const firing = `count(ALERTS{alertname="${alert}",alertstate="firing"})`
  const at = (minutes: number, samples: readonly object[]) => ({
    expr: firing,
    eval_time: `${String(minutes)}m`,
    exp_samples: samples,
  })
  return {
    name: alert,
    interval: `${String(stepOf(alertCase))}m`,
    input_series: series.map((one) => ({ series: one.series, values: valuesOf(one, alertCase) })),
    promql_expr_test: [
      at(firingMinutes, [{ labels: '{}', value: 1 }]),
      at(firingMinutes + recoveredMinutes, []),
    ],
  }
}

/** The values of a series; after the recovery, a counter continues from its last value. */
function valuesOf(
  { firing, recovered }: AlertCase['series'][number],
  alertCase: AlertCase,
): string {
  const { firingMinutes = FIRING_MINUTES, recoveredMinutes = RECOVERED_MINUTES } = alertCase
  const [steps, after] = [firingMinutes / stepOf(alertCase), recoveredMinutes / stepOf(alertCase)]
  const [, perStep] = /^0\+([\d.]+)x$/.exec(firing) ?? []
  const first = perStep === undefined ? '' : String(Number(perStep) * steps)
  return `${firing}${String(steps)} ${first}${recovered}${String(after)}`
}
