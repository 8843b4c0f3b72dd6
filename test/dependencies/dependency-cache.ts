// The cache of dependencies that tests download or build once, outside the checkout. The folder of
// a dependency appears only once it is complete, even if two processes fill it concurrently.
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * The folder of the dependency `name`, which contains its version. If it does not exist, `fill`
 * fills a new folder first. Throws the errors of `fill`.
 */
export async function cachedDependency(
  name: string,
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const dependencies = join(cache, 'curtail', 'parts')
  const folder = join(dependencies, name)
  if (await exists(folder)) return folder
  await mkdir(dependencies, { recursive: true })
  const unfinished = await mkdtemp(join(dependencies, `.${name}-`))
  try {
    await fill(unfinished)
    await rename(unfinished, folder)
  } catch (error) {
    if (!isExistingFolder(error)) throw error // another process filled the folder meanwhile
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
  return folder
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

function isExistingFolder(error: unknown): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === 'rename' && (code === 'ENOTEMPTY' || code === 'EEXIST')
}
