// The smoke run of every k6 scenario against the whole service: it meets its thresholds and reports
// them as JSON and JUnit. Throughput is measured by the benchmarks.
import { beforeAll, expect, test } from '@jest/globals'
import { scenarios } from '../../loadtest/copy-to-chart.ts'
import { findK6, runK6, runK6Job } from '../dependencies/k6.ts'
import { objectOf, podsOf, renderChart } from '../kit/chart/chart-render.ts'
import type { Stack } from './start-stack.ts'

const BUILD_MS_MAX = 900_000
const RUN_MS_MAX = 60_000
/** The machine runs the whole service and k6: only a response that hangs exceeds this. */
const LATENCY_MS_MAX = '2000'
/**
 * More than the 150 arrivals of the longest smoke run: after a stall of the machine k6 starts them
 * together, and would drop those for which no user is idle.
 */
const USERS = '160'
/** The settings of every run except the URL. */
const settings = {
  LINKS: '50',
  USERS,
  REDIRECT_MS_MAX: LATENCY_MS_MAX,
  CREATE_MS_MAX: LATENCY_MS_MAX,
}

/** The `load` suite. */
export function testLoad(stackNow: () => Stack): void {
  beforeAll(findK6, BUILD_MS_MAX)

  const smoke = (name: string, env: Readonly<Record<string, string>> = {}) => {
    const all = { BASE_URL: stackNow().url, ...settings, ...env }
    return runK6(name, { env: all, msMax: RUN_MS_MAX })
  }

  test.each(scenarios)(
    'the smoke run of %s meets its thresholds',
    async (name) => {
      const { code, stdout, stderr, json, junit } = await smoke(name)
      process.stdout.write(stdout)
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).not.toContain('FAILED')
      expect(junit).toContain(`<testsuite name="${name}"`)
      expect(junit).toContain('failures="0"')
      expect(Object.keys((JSON.parse(json ?? '{}') as { metrics: object }).metrics)).toEqual(
        expect.arrayContaining(['http_req_duration', 'checks']),
      )
    },
    RUN_MS_MAX,
  )

  testJob(stackNow)

  test(
    'a violated threshold fails the run, and both summaries report it',
    async () => {
      const { code, stdout, junit } = await smoke('redirects-hot', { REDIRECT_MS_MAX: '0' })
      expect(code).toBe(99)
      expect(stdout).toContain('FAILED http_req_duration{scenario:redirects_hot} p(99)<0')
      expect(junit).toContain('failures="1"')
    },
    RUN_MS_MAX,
  )

  test(
    'an unknown shape is rejected with the list of allowed shapes',
    async () => {
      const { code, stderr } = await smoke('creates', { SHAPE: 'huge' })
      expect(code).not.toBe(0)
      expect(stderr).toContain('SHAPE is huge: allowed are smoke, average, peak, spike, soak')
    },
    RUN_MS_MAX,
  )
}

/** The load-test Job of the chart. */
function testJob(stackNow: () => Stack): void {
  test(
    'the Job of the chart runs with the scenarios of the chart',
    async () => {
      const values = { loadTest: { enabled: true }, edge: { trustedHops: 1 } }
      const objects = await renderChart({ major: 4, values })
      const [job] = podsOf(objects.filter(({ kind }) => kind === 'Job')).filter(
        ({ labels }) => labels['app.kubernetes.io/component'] === 'load-test',
      )
      const scripts = objectOf(objects, 'ConfigMap', 'shop-curtail-load-test').data ?? {}
      const [container] = job?.spec.containers ?? []
      const { code, stdout, stderr } = await runK6Job({
        command: container?.command ?? [],
        scripts,
        env: { BASE_URL: stackNow().url, ...settings },
        msMax: RUN_MS_MAX,
      })
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toContain('passed checks{scenario:creates} rate>0.999')
    },
    RUN_MS_MAX,
  )
}
