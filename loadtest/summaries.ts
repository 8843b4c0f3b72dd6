// The summaries of a k6 run: all metrics as JSON, its thresholds as JUnit tests, and a few lines on
// stdout. k6 itself evaluates the thresholds.
import { given } from './shapes.ts'

/** The fields in use of the data that k6 passes to `handleSummary`. */
export interface RunData {
  readonly metrics: Readonly<Record<string, MetricSummary>>
}

interface MetricSummary {
  readonly values: Readonly<Record<string, number>>
  readonly thresholds?: Readonly<Record<string, { readonly ok: boolean }>>
}

interface ThresholdResult {
  readonly name: string
  readonly isPassed: boolean
  readonly found: string
}

/** The `handleSummary` of the scenario `name`: writes NAME.json and NAME.xml into `OUT_FOLDER`. */
export function summariesOf(name: string): (data: RunData) => Record<string, string> {
  return (data) => {
    const results = thresholdResultsOf(data)
    const path = `${given.outFolder}/${name}`
    return {
      [`${path}.json`]: JSON.stringify(data, undefined, 2),
      [`${path}.xml`]: renderJunit(name, results),
      stdout: renderLines(name, results),
    }
  }
}

function thresholdResultsOf({ metrics }: RunData): ThresholdResult[] {
  return Object.entries(metrics).flatMap(([metric, { values, thresholds = {} }]) => {
    const found = Object.entries(values)
      .map(([figure, value]) => `${figure}=${Number(value.toFixed(4))}`)
      .join(' ')
    return Object.entries(thresholds).map(([rule, { ok }]) => {
      return { name: `${metric} ${rule}`, isPassed: ok, found }
    })
  })
}

function renderLines(name: string, results: readonly ThresholdResult[]): string {
  const lines = results.map(
    (one) => `${one.isPassed ? 'passed' : 'FAILED'} ${one.name}: ${one.found}`,
  )
  return [`${name}, shape ${given.shape}, at ${given.baseUrl}`, ...lines, ''].join('\n')
}

function renderJunit(name: string, results: readonly ThresholdResult[]): string {
  const failed = results.filter(({ isPassed }) => !isPassed).length
  const cases = results.map((one) => {
    const start = `    <testcase classname="${escape(name)}" name="${escape(one.name)}"`
    if (one.isPassed) return `${start}/>`
    return `${start}><failure message="${escape(one.found)}"/></testcase>`
  })
  const counts = `tests="${results.length}" failures="${failed}"`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${escape(name)}" ${counts}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
