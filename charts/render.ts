// `npm run render`: renders the generated files of the chart. With `--check` it only lists outdated
// files, and exits with 1 if there are any.
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { copiesForChart } from '../envoy/copy-to-chart.ts'
import { scenariosForChart } from '../loadtest/copy-to-chart.ts'
import { monitoringForChart } from './dashboards/files-for-chart.ts'
import { schemaVersion } from '../src/stores/cassandra/schema.ts'
import { renderValues } from './render-values.ts'

const chart = join(dirname(fileURLToPath(import.meta.url)), 'curtail')

/** The generated files: path to expected content. */
export async function renderedFiles(): Promise<ReadonlyMap<string, string>> {
  const { schema, readme } = await renderValues(await readFile(join(chart, 'values.yaml'), 'utf8'))
  return new Map([
    [join(chart, 'values.schema.json'), schema],
    [join(chart, 'README.md'), readme],
    [join(chart, 'Chart.yaml'), await renderChartFile()],
    ...monitoringForChart(chart),
    ...(await copiesForChart(chart)),
    ...(await scenariosForChart(chart)),
  ])
}

/** The current Chart.yaml with the schema version of the code. */
async function renderChartFile(): Promise<string> {
  const source = await readFile(join(chart, 'Chart.yaml'), 'utf8')
  const key = 'curtail.dev/schema-version'
  return source.replace(new RegExp(`${key}: '\\d+'`), `${key}: '${schemaVersion}'`)
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
