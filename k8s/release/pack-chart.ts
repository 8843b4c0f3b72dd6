// Packs a chart with the name and the digest of the released image, as Helm packs charts.
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { parse } from 'yaml'
import { z } from 'zod'
import { writeTar } from '../image/archive.ts'
import { root } from '../image/bundle.ts'
import { setScalars } from './set-scalars.ts'
import { listFiles } from './source.ts'

const chartFile = z.looseObject({
  name: z.string(),
  version: z.string(),
  appVersion: z.string(),
  description: z.string(),
})
const withImage = z.object({ image: z.object({ repository: z.string(), digest: z.string() }) })

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
  image: { readonly repository: string; readonly digest: string },
): Promise<PackedChart> {
  const work = join(folder, `${name}.work`)
  // The folder of curtail-ratelimit is a symlink into the chart curtail, which depends on it.
  const source =
    name === 'curtail-ratelimit' ? 'charts/curtail/charts/curtail-ratelimit' : `charts/${name}`
  for (const file of await listFiles(source)) {
    const path = join(work, name, file)
    await mkdir(dirname(path), { recursive: true })
    await copyFile(join(root, source, file), path)
    if (/(^|\/)values\.yaml$/.test(file)) await setImage(path, image)
  }
  const facts = chartFile.parse(parse(await readFile(join(work, name, 'Chart.yaml'), 'utf8')))
  const values: unknown = parse(await readFile(join(work, name, 'values.yaml'), 'utf8'))
  const tar = join(work, 'chart.tar')
  await writeTar({ folder: work, name, path: tar }, ['--mode=u=rwX,go=rX'])
  const path = join(folder, `${name}-${facts.version}.tgz`)
  await pipeline(createReadStream(tar), createGzip(), createWriteStream(path))
  await rm(work, { recursive: true })
  return { path, facts, values }
}

/** Sets the image in a file of values, unless the chart has no containers. */
async function setImage(
  path: string,
  { repository, digest }: { readonly repository: string; readonly digest: string },
): Promise<void> {
  const text = await readFile(path, 'utf8')
  if (!withImage.safeParse(parse(text)).success) return
  const values = { 'image.repository': repository, 'image.digest': digest }
  await writeFile(path, setScalars(text, values))
}
