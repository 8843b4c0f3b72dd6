// Packs committed files as Helm packs charts: the same contents give the same bytes.
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile, mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { writeTar } from '../image/archive.ts'
import { root } from '../image/bundle.ts'
import { listFiles } from './source.ts'

/** Copies the committed files of the folder `source` to `target`; resolves with their copies. */
export async function copyCommitted(source: string, target: string): Promise<readonly string[]> {
  const copies: string[] = []
  for (const file of await listFiles(source)) {
    const path = join(target, file)
    await mkdir(dirname(path), { recursive: true })
    await copyFile(join(root, source, file), path)
    copies.push(path)
  }
  return copies
}

/** Writes the folder `name` in `work` to the file `path`, and deletes `work`. */
export async function packFolder(work: string, name: string, path: string): Promise<void> {
  const tar = join(work, 'contents.tar')
  await writeTar({ folder: work, name, path: tar }, ['--mode=u=rwX,go=rX'])
  await pipeline(createReadStream(tar), createGzip(), createWriteStream(path))
  await rm(work, { recursive: true })
}
