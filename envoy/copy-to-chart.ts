// The edge's files that the chart contains unchanged, because a chart can only read files in its
// own folder. charts/render.ts writes them.
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const names = ['envoy.yaml', 'certificate.yaml', 'rate-limits.yaml'] as const

/** The paths of the copies in the chart, with their contents. */
export async function copiesForChart(chart: string): Promise<[string, string][]> {
  return Promise.all(
    names.map(async (name): Promise<[string, string]> => {
      return [join(chart, 'files', name), await readFile(join(here, name), 'utf8')]
    }),
  )
}
