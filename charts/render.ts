// `npm run render`: makes what of the chart is made from other files. With `--check` it only says
// what is not as it should be, and ends with 1.
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { copiesForChart } from '../envoy/copy-to-chart.ts'
import { scenariosForChart } from '../loadtest/copy-to-chart.ts'
import { monitoringForChart } from './dashboards/files-for-chart.ts'
import { schemaVersion } from '../src/stores/cassandra/schema.ts'
import { renderValues } from './render-values.ts'

const chart = join(dirname(fileURLToPath(import.meta.url)), 'curtail')

/** The files that are made, by their paths, with what they should hold. */
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

/** Chart.yaml as it is, with the version of the schema that the code has. */
async function renderChartFile(): Promise<string> {
  const text = await readFile(join(chart, 'Chart.yaml'), 'utf8')
  const key = 'curtail.dev/schema-version'
  return text.replace(new RegExp(`${key}: '\\d+'`), `${key}: '${schemaVersion}'`)
}

async function main(isChecking: boolean): Promise<number> {
  let stale = 0
  for (const [path, wanted] of await renderedFiles()) {
    const found = await readFile(path, 'utf8').catch(() => undefined) // not made yet
    if (found === wanted) continue
    stale++
    process.stdout.write(`${isChecking ? 'not as rendered' : 'rendered'}: ${path}\n`)
    if (!isChecking) await writeFile(path, wanted)
  }
  return isChecking && stale > 0 ? 1 : 0
}

if (import.meta.main) process.exitCode = await main(process.argv.includes('--check'))
