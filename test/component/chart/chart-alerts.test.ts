// The alerts and dashboards that the chart renders: all of them, and only for this release.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { alerts } from '../../../charts/dashboards/alerts.ts'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  chartFolder,
  type GivenValues,
  objectOf,
  renderChart,
} from '../../kit/chart/chart-render.ts'

interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
  readonly annotations?: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>
}

async function rulesOf(values: GivenValues): Promise<readonly Rule[]> {
  const objects = await renderChart({ major: 4, values })
  const { spec } = objectOf(objects, 'PrometheusRule', 'shop-curtail-alerts')
  const { groups } = spec as unknown as { groups: readonly { rules: readonly Rule[] }[] }
  return groups.flatMap(({ rules }) => rules)
}

test('the chart renders every alert with its runbook, for the pods of this release', async () => {
  const rules = await rulesOf(chartCases['pods watched by Prometheus']?.values ?? {})
  const rendered = rules.filter(({ alert }) => alert !== undefined)
  expect(rendered.map(({ alert }) => alert)).toEqual(alerts.map(({ alert }) => alert))
  for (const { alert = '', annotations } of rendered) {
    const page = alert.toLowerCase()
    expect(annotations).toEqual({
      summary: expect.stringMatching(/^store\/shop-curtail: \S/),
      description: `Runbook: docs/runbooks/${page}.md`,
      runbook_url: `https://runbooks.example/${page}`,
    })
  }
  const all = JSON.stringify(rules)
  expect(all).not.toMatch(/NAMESPACE|RELEASE|RUNBOOKS/)
  const ours = rules.filter(({ expr }) => /\bcurtail_\w+\{/.test(expr))
  expect(ours.length).toBeGreaterThan(5)
  for (const { expr } of ours) {
    expect(expr).toContain('namespace="store",pod=~"shop-curtail-.*"')
  }
})

test('the chart renders no runbook URLs if the values set none', async () => {
  const monitored = { enabled: true, renderMode: 'alwaysRender' }
  const rules = await rulesOf({ monitoring: { rules: monitored } })
  expect(rules.filter(({ alert }) => alert !== undefined)).toHaveLength(alerts.length)
  expect(JSON.stringify(rules)).not.toContain('runbook_url')
})

test('the chart renders every dashboard as a ConfigMap for Grafana’s sidecar', async () => {
  // The folder does not exist if the chart has no dashboards.
  const files = await readdir(join(chartFolder, 'dashboards')).catch(() => [])
  const { values = {} } = chartCases['pods watched by Prometheus'] ?? {}
  const objects = await renderChart({ major: 4, values })
  const found = objects.filter(({ metadata }) => metadata.labels?.['grafana_dashboard'] === '1')
  expect(found.flatMap(({ data = {} }) => Object.keys(data)).sort()).toEqual(files.sort())
  for (const { metadata, data = {} } of found) {
    expect(metadata.annotations).toMatchObject({ grafana_folder: 'Links' })
    for (const [name, dashboard] of Object.entries(data)) {
      const source = await readFile(join(chartFolder, 'dashboards', name), 'utf8')
      expect(JSON.parse(dashboard)).toEqual(JSON.parse(source))
    }
  }
})
