// `npm run render`: renders the generated files of the charts. With `--check` it only lists
// outdated files, and exits with 1 if there are any.
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { copiesForChart } from '../envoy/copy-to-chart.ts'
import { scenariosForChart } from '../loadtest/copy-to-chart.ts'
import { monitoringForChart } from './dashboards/files-for-chart.ts'
import { schemaVersion } from '../src/stores/cassandra/schema.ts'
import { renderLimiterChart, renderLimiterValues } from './render-limiter.ts'
import { renderValues } from './render-values.ts'

const chart = join(dirname(fileURLToPath(import.meta.url)), 'curtail')
const limiter = join(chart, 'charts', 'curtail-ratelimit')

const INTRO = `
[docs/install.md](../../docs/install.md) explains how to install it; \`values-staging.yaml\` and
\`values-production.yaml\` are complete examples. \`npm run render\` renders this page from
\`values.yaml\`. A value that is not listed, or does not match its schema, is rejected.
`
const LIMITER_INTRO = `
[docs/drop-in.md](../../../../docs/drop-in.md) explains how to install it. \`npm run render\`
renders this page from the values of the chart curtail. A value that is not listed, or does not
match its schema, is rejected.
`

/** The generated files: path to expected content. */
export async function renderedFiles(): Promise<ReadonlyMap<string, string>> {
  const values = await readFile(join(chart, 'values.yaml'), 'utf8')
  const { schema, readme } = await renderValues(values, { name: 'curtail', intro: INTRO })
  const chartFile = await renderChartFile()
  return new Map([
    [join(chart, 'values.schema.json'), schema],
    [join(chart, 'README.md'), readme],
    [join(chart, 'Chart.yaml'), chartFile],
    ...(await limiterFiles(values, chartFile)),
    ...monitoringForChart(chart),
    ...(await copiesForChart(chart)),
    ...(await scenariosForChart(chart)),
  ])
}

/** The files of the chart curtail-ratelimit, from the values and Chart.yaml of curtail. */
async function limiterFiles(values: string, chartFile: string): Promise<[string, string][]> {
  const ownValues = await renderLimiterValues(values)
  const about = { name: 'curtail-ratelimit', intro: LIMITER_INTRO }
  const { schema, readme } = await renderValues(ownValues, about)
  const ownChart = await readFile(join(limiter, 'Chart.yaml'), 'utf8')
  return [
    [join(limiter, 'values.yaml'), ownValues],
    [join(limiter, 'values.schema.json'), schema],
    [join(limiter, 'README.md'), readme],
    [join(limiter, 'Chart.yaml'), renderLimiterChart(ownChart, chartFile)],
  ]
}

/** The current Chart.yaml with the schema version of the code, and the dependency's version. */
async function renderChartFile(): Promise<string> {
  const source = await readFile(join(chart, 'Chart.yaml'), 'utf8')
  const key = 'curtail.dev/schema-version'
  const version = /^version: .*$/m.exec(source)?.[0] ?? ''
  return source
    .replace(new RegExp(`${key}: '\\d+'`), `${key}: '${schemaVersion}'`)
    .replace(/(- name: curtail-ratelimit\n +)version: .*/, `$1${version}`)
}

async function main(isChecking: boolean): Promise<number> {
  let stale = 0
  for (const [path, wanted] of await renderedFiles()) {
    const found = await readFile(path, 'utf8').catch(() => undefined) // not rendered yet
    if (found === wanted) continue
    stale++
    process.stdout.write(`${isChecking ? 'outdated' : 'rendered'}: ${path}\n`)
    if (!isChecking) await writeFile(path, wanted)
  }
  return isChecking && stale > 0 ? 1 : 0
}

if (import.meta.main) process.exitCode = await main(process.argv.includes('--check'))
