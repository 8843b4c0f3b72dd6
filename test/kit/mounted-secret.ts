// A folder of files that changes like a mounted Secret: by a swap of the symbolic link `..data`.
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The contents of the files by name. */
type Files = Readonly<Record<string, string | Uint8Array>>

/** A mounted Secret. */
export interface MountedSecret {
  readonly pathOf: (name: string) => string
  /** Replaces all files at once; the names stay the same. */
  swap(files: Files): Promise<void>
  remove(): Promise<void>
}

/** Creates the folder with these files. */
export async function mountSecret(files: Files): Promise<MountedSecret> {
  const root = await mkdtemp(join(tmpdir(), 'curtail-secret-'))
  let versions = 0
  const swap = async (contents: Files) => {
    const version = `..v${++versions}`
    await mkdir(join(root, version))
    for (const [name, content] of Object.entries(contents)) {
      await writeFile(join(root, version, name), content)
    }
    await symlink(version, join(root, '..next'))
    await rename(join(root, '..next'), join(root, '..data'))
  }
  await swap(files)
  for (const name of Object.keys(files)) await symlink(join('..data', name), join(root, name))
  return {
    pathOf: (name) => join(root, name),
    swap,
    remove: () => rm(root, { recursive: true }),
  }
}
