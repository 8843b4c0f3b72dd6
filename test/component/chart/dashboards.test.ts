// Dashboards: the files of the chart are equal to the generated ones, and every panel has a valid
// query. The stack tests verify that each query returns data.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { alerts } from '../../../charts/dashboards/alerts.ts'
import { boards, monitoringForChart } from '../../../charts/dashboards/files-for-chart.ts'
import { edgeMetrics, nameOf, otherMetrics } from '../../../charts/dashboards/series.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { findPrometheus, runPromtool } from '../../dependencies/prometheus.ts'

const FETCH_MS_MAX = 300_000
const TEST_MS_MAX = 180_000
const chart = new URL('../../../charts/curtail', import.meta.url).pathname
const panels = boards.flatMap(({ rows }) => rows.flatMap((row) => row.panels))

beforeAll(findPrometheus, FETCH_MS_MAX)

test('the chart contains exactly the generated dashboards', async () => {
  const files = monitoringForChart(chart)
  for (const [path, expected] of files)
    expect([path, await readFile(path, 'utf8')]).toEqual([path, expected])
  const found = await readdir(`${chart}/dashboards`)
  expect(found.sort()).toEqual(boards.map(({ name }) => `${name}.json`).sort())
})

test('every panel has a description, and a title that is unique on its dashboard', () => {
  for (const { rows } of boards) {
    const titles = rows.flatMap((row) => row.panels.map(({ title }) => title))
    expect(titles).toEqual([...new Set(titles)])
  }
  for (const { description, queries } of panels) {
    expect(description).toMatch(/\.$/)
    expect(queries.length).toBeGreaterThan(0)
  }
})

test('every expression contains only metrics of the catalogue, of Envoy and of Node.js', () => {
  const { registry, ...metrics } = createMetrics()
  expect(registry).toBeDefined()
  const ours = (Object.keys(metrics) as (keyof typeof metrics)[]).map(nameOf)
  const edge = Object.values(edgeMetrics).map((name) => `envoy_${name}`)
  const existing = new Set([...ours, ...edge, ...Object.values(otherMetrics), 'ALERTS'])
  const expressions = [
    ...alerts.map(({ expr }) => expr),
    ...panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
  ]
  const named = expressions.flatMap((expr) => [...expr.matchAll(/([a-zA-Z0-9_:]+)\{/g)])
  const unknown = named
    .map(([, name = '']) => name)
    .filter((name) => !name.startsWith('curtail:'))
    .filter(
      (name) => !existing.has(name) && !existing.has(name.replace(/_(bucket|count|sum)$/, '')),
    )
  expect(named.length).toBeGreaterThan(expressions.length / 2)
  expect(unknown).toEqual([])
})

test(
  'promtool parses the expression of every panel',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'curtail-dashboards-'))
    const rules = panels.flatMap(({ queries }) =>
      queries.map(({ expr }) => ({
        record: 'panel',
        expr: expr.replaceAll('$__rate_interval', '1m'),
        labels: { at: expr },
      })),
    )
    await writeFile(`${folder}/rules.yaml`, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
    const { code, output } = await runPromtool(['check', 'rules', `${folder}/rules.yaml`])
    await rm(folder, { recursive: true })
    expect({ code, output }).toMatchObject({ code: 0 })
  },
  TEST_MS_MAX,
)
