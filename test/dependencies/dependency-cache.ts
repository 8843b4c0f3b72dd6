// The cache of dependencies that tests download or build once: outside the checkout, one folder
// each. A folder appears only when it is complete, also if two processes fill it at the same time.
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * The folder of the dependency `name`, which includes its version. If it does not exist, `fill`
 * fills a new folder first. Throws what `fill` throws.
 */
export async function cachedDependency(
  name: string,
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const parts = join(cache, 'curtail', 'parts')
  const folder = join(parts, name)
  if (await isThere(folder)) return folder
  await mkdir(parts, { recursive: true })
  const unfinished = await mkdtemp(join(parts, `.${name}-`))
  try {
    await fill(unfinished)
    await rename(unfinished, folder)
  } catch (error) {
    if (!isTaken(error)) throw error // taken: another process was sooner with the same part
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
  return folder
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

function isTaken(error: unknown): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === 'rename' && (code === 'ENOTEMPTY' || code === 'EEXIST')
}
