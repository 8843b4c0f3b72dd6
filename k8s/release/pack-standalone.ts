// Packs k8s/standalone with the name, the tag and the digest of the released image, so that
// `kubectl apply` works without a change of the image: docs/install.md.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { copyCommitted, packFolder } from './pack-folder.ts'
import type { ReleasedImage } from './pack-chart.ts'
import { setScalars } from './set-scalars.ts'

const STANDALONE = 'k8s/standalone'

/** Writes the file `curtail-standalone-VERSION.tgz` to `folder`. */
export async function packStandalone(
  folder: string,
  version: string,
  { repository, digest }: ReleasedImage,
): Promise<void> {
  const work = join(folder, 'standalone.work')
  await copyCommitted(STANDALONE, join(work, STANDALONE))
  const path = join(work, STANDALONE, 'kustomization.yaml')
  const values = {
    'images.0.newName': repository,
    'images.0.newTag': version,
    'images.0.digest': digest,
  }
  await writeFile(path, setScalars(await readFile(path, 'utf8'), values))
  await packFolder(work, 'k8s', join(folder, `curtail-standalone-${version}.tgz`))
}
