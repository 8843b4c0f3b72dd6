// Copies the k6 scenarios and their shared modules into the chart, because Helm reads no files
// outside the chart. charts/render.ts writes them.
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'

const here = dirname(fileURLToPath(import.meta.url))

/** Names of the scenarios; each is a file. */
export const scenarios = [
  'redirects-hot',
  'redirects-cold',
  'creates',
  'mixed',
  'limited-client',
  'code-walker',
] as const

const shared = ['clients', 'shapes', 'summaries'] as const

/** The path and the content of the file for the chart: the data of a ConfigMap. */
export async function scenariosForChart(chart: string): Promise<[string, string][]> {
  const files = [...scenarios, ...shared].map((name) => `${name}.ts`)
  const sources = await Promise.all(
    files.map(async (file) => [file, await readFile(join(here, file), 'utf8')] as const),
  )
  const data = stringify(Object.fromEntries(sources), { blockQuote: 'literal', lineWidth: 0 })
  return [[join(chart, 'files', 'load-test.yaml'), data]]
}
