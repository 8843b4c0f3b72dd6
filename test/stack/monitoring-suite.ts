// Dashboards and alerts on the whole service and a real Prometheus that scrapes it: every panel has
// data, and alerts fire and clear. The durations in the rules are divided by 60.
import { readdir, readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { renderRules } from '../../charts/dashboards/alerts.ts'
import { boards } from '../../charts/dashboards/files-for-chart.ts'
import { edgeMetrics, otherMetrics } from '../../charts/dashboards/series.ts'
import { createLinkRequest } from '../kit/http/client.ts'
import { openHttpClient } from '../kit/http/http-client.ts'
import { waitFor } from '../kit/wait-for.ts'
import {
  findPrometheus,
  type RunningPrometheus,
  scrapeTarget,
  startPrometheus,
} from '../dependencies/prometheus.ts'
import { expressionsOf } from '../kit/runbook-commands.ts'
import { newAddress, openEdgeClient } from './edge-client.ts'
import { underLoad } from './load.ts'
import type { Component } from './component.ts'
import { createLinks, startRedirects, restoreStack } from './stack-state.ts'
import type { Stack } from './start-stack.ts'

const FETCH_MS_MAX = 300_000
const TEST_MS_MAX = 180_000
const WAIT_MS_MAX = 90_000
const DIVIDE = 60
const LINKS = 5
/** Fewer than the pool has blocks. */
const CRASHES_MAX = 14
const REFILLED_CODES = 100_000
/** The Helm release in the labels of the stack's pods. */
const RELEASE = 'curtail'

const names = [
  ...Object.values(edgeMetrics).map((name) => `envoy_${name}`),
  ...Object.values(otherMetrics),
]

/** A fault for which an alert fires, and its repair by an operator. */
interface Fault {
  readonly what: string
  readonly alert: string
  readonly inject: (stack: Stack, isFiring: () => Promise<boolean>) => Promise<void>
  readonly repair: (stack: Stack) => Promise<void>
}

const faults: readonly Fault[] = [
  {
    what: 'no redirect pod',
    alert: 'CurtailRedirectBurnFast',
    inject: (stack) => killAll(stack.redirects),
    repair: restoreStack,
  },
  {
    what: 'no limiter',
    alert: 'CurtailLimiterUnavailable',
    inject: (stack) => killAll(stack.limiters),
    repair: restoreStack,
  },
  {
    what: 'a create pod that crashes repeatedly and loses a block of codes each time',
    alert: 'CurtailPoolRunningOut',
    inject: loseBlocks,
    // As its runbook describes: a refill with a higher target.
    repair: async (stack) => {
      await stack.startRefill(REFILLED_CODES).succeeded(WAIT_MS_MAX)
      await restoreStack(stack)
    },
  },
]

/** The `monitoring` suite. */
export function testMonitoring(stackNow: () => Stack): void {
  let prometheus: RunningPrometheus
  let codes: readonly string[]

  beforeAll(async () => {
    await findPrometheus()
    const rules = renderRules({ divide: DIVIDE }).replaceAll(/NAMESPACE|RELEASE/g, RELEASE)
    prometheus = await startPrometheus({ scrapes: scrapesOf(stackNow()), rules })
    codes = await createLinks(stackNow(), LINKS)
  }, FETCH_MS_MAX)

  afterAll(async () => {
    await prometheus.stop()
  })

  const load = () => startRedirects(codes, () => stackNow().port)
  const isFiring = (alert: string) => async () => (await prometheus.firing()).includes(alert)

  test(
    'every panel except the controller’s returns data',
    async () => {
      const titles: string[] = []
      await underLoad(load(), async () => {
        for (const { name, title, expr } of panelQueries()) {
          const hasData = async () => (await prometheus.query(expr)).length > 0
          await waitFor(`data for ${name}: ${title}: ${expr}`, hasData, WAIT_MS_MAX)
          titles.push(title)
        }
      })
      expect(titles.length).toBeGreaterThan(40)
    },
    TEST_MS_MAX,
  )

  testRunbooks(() => prometheus)

  test.each(faults)(
    '$what: $alert fires, and clears after the repair',
    async ({ alert, inject, repair }) => {
      const stack = stackNow()
      await underLoad(load(), async () => {
        await inject(stack, isFiring(alert))
        await waitFor(`${alert} to fire`, isFiring(alert), WAIT_MS_MAX)
        await repair(stack)
        const isClear = async () => !(await isFiring(alert)())
        await waitFor(`${alert} to clear`, isClear, WAIT_MS_MAX)
      })
      expect(await prometheus.firing()).not.toContain(alert)
    },
    TEST_MS_MAX,
  )

  // After the faults, because Envoy exports a counter of errors only after the first error.
  test(
    'every metric of Envoy and Node.js that the dashboards use is scraped',
    async () => {
      await provokeDenial(stackNow())
      for (const name of names) {
        const series = `{__name__=~"${name}(_count)?"}`
        const isSeen = async () => (await prometheus.query(series)).length > 0
        await waitFor(`a series of ${name}`, isSeen, WAIT_MS_MAX)
      }
      expect(names.length).toBeGreaterThan(10)
    },
    TEST_MS_MAX,
  )
}

/** The Prometheus queries of the runbooks. */
function testRunbooks(prometheusNow: () => RunningPrometheus): void {
  test(
    'Prometheus evaluates every expression of the runbooks',
    async () => {
      const folder = new URL('../../docs/runbooks/', import.meta.url)
      const names = await readdir(folder)
      const expressions = await Promise.all(
        names.map(async (name) => {
          return expressionsOf({ name, text: await readFile(new URL(name, folder), 'utf8') })
        }),
      )
      for (const expression of expressions.flat()) await prometheusNow().query(expression)
      expect(expressions.flat().length).toBeGreaterThan(20)
    },
    TEST_MS_MAX,
  )
}

async function killAll(components: readonly Component[]): Promise<void> {
  for (const component of components) await component.kill()
}

/**
 * Crashes a create pod right after it claimed a block, until the alert fires: the other create pod
 * reads the level of the pool every 15 s.
 */
async function loseBlocks(stack: Stack, isFiring: () => Promise<boolean>): Promise<void> {
  const [, pod] = stack.creates
  for (let crashes = 0; pod !== undefined && crashes < CRASHES_MAX; crashes++) {
    if (await isFiring()) return
    const httpClient = openHttpClient(pod.port)
    const response = await httpClient.send(
      createLinkRequest({ long_url: 'https://example.com/lost' }),
    )
    httpClient.close()
    expect(response.status).toBe(201)
    await pod.kill()
    await pod.restart()
  }
}

/** Creates until the limiter denies a request. */
async function provokeDenial(stack: Stack): Promise<void> {
  const client = await openEdgeClient(stack.port, newAddress())
  const isRejected = async () =>
    (await client.create({ long_url: 'https://example.com/' })).status === 429
  await waitFor('a denial', isRejected, WAIT_MS_MAX)
  client.close()
}

function panelQueries() {
  return boards
    .filter(({ name }) => name !== 'controller')
    .flatMap(({ name, rows }) =>
      rows.flatMap(({ panels }) =>
        panels.flatMap(({ title, queries }) =>
          queries.map(({ expr }) => ({ name, title, expr: chooseRelease(expr) })),
        ),
      ),
    )
}

function chooseRelease(expr: string): string {
  return expr
    .replaceAll('$__rate_interval', '20s')
    .replaceAll('$namespace', RELEASE)
    .replaceAll('$release', RELEASE)
}

function scrapesOf({ creates, redirects, limiters, edge }: Stack) {
  const labelsOf = (name: string) => ({ namespace: RELEASE, pod: `${RELEASE}-${name}` })
  const pods = [...creates, ...redirects, ...limiters].map((pod) => ({
    address: `127.0.0.1:${String(pod.now().ready['adminPort'])}`,
    path: '/metrics',
    labels: labelsOf(pod.name),
  }))
  const address = new URL(edge.metricsUrl).host
  const envoy = { address, path: '/stats/prometheus', labels: labelsOf('edge-1') }
  return [...pods, envoy].map(scrapeTarget)
}
