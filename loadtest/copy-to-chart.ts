// The k6 scenarios that the chart carries as they are, with what they share: a chart can read
// nothing outside its own folder. charts/render.ts writes them.
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'

const here = dirname(fileURLToPath(import.meta.url))

/** Names of the scenarios, each a file. */
export const scenarios = [
  'redirects-hot',
  'redirects-cold',
  'creates',
  'mixed',
  'limited-client',
  'code-walker',
] as const

const shared = ['clients', 'shapes', 'summaries'] as const

/** What the chart carries, by its path, with what it is to hold: the data of a ConfigMap. */
export async function scenariosForChart(chart: string): Promise<[string, string][]> {
  const files = [...scenarios, ...shared].map((name) => `${name}.ts`)
  const texts = await Promise.all(
    files.map(async (file) => [file, await readFile(join(here, file), 'utf8')] as const),
  )
  const text = stringify(Object.fromEntries(texts), { blockQuote: 'literal', lineWidth: 0 })
  return [[join(chart, 'files', 'load-test.yaml'), text]]
}
