// Packs a chart with the name and the digest of the released image, as Helm packs charts.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { copyCommitted, packFolder } from './pack-folder.ts'
import { setScalars } from './set-scalars.ts'

const chartFile = z.looseObject({
  name: z.string(),
  version: z.string(),
  appVersion: z.string(),
  description: z.string(),
})
const withImage = z.object({ image: z.object({ repository: z.string(), digest: z.string() }) })

/** The name of the released image, and its digest. */
export interface ReleasedImage {
  readonly repository: string
  readonly digest: string
}

/** A packed chart. */
export interface PackedChart {
  /** The file `NAME-VERSION.tgz`. */
  readonly path: string
  /** Chart.yaml. */
  readonly facts: z.infer<typeof chartFile>
  /** values.yaml. */
  readonly values: unknown
}

/** Packs the chart `name` into `folder`. */
export async function packChart(
  folder: string,
  name: string,
  image: ReleasedImage,
): Promise<PackedChart> {
  const work = join(folder, `${name}.work`)
  // The folder of curtail-ratelimit is a symlink into the chart curtail, which depends on it.
  const source =
    name === 'curtail-ratelimit' ? 'charts/curtail/charts/curtail-ratelimit' : `charts/${name}`
  for (const path of await copyCommitted(source, join(work, name)))
    if (path.endsWith('/values.yaml')) await setImage(path, image)
  const facts = chartFile.parse(parse(await readFile(join(work, name, 'Chart.yaml'), 'utf8')))
  const values: unknown = parse(await readFile(join(work, name, 'values.yaml'), 'utf8'))
  const path = join(folder, `${name}-${facts.version}.tgz`)
  await packFolder(work, name, path)
  return { path, facts, values }
}

/** Sets the image in a file of values, unless the chart has no containers. */
async function setImage(path: string, { repository, digest }: ReleasedImage): Promise<void> {
  const text = await readFile(path, 'utf8')
  if (!withImage.safeParse(parse(text)).success) return
  const values = { 'image.repository': repository, 'image.digest': digest }
  await writeFile(path, setScalars(text, values))
}
