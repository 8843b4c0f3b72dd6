// The folder of parts that tests fetch once: outside the checkout, a folder for each part. A part
// is there whole or not at all, also when two processes fetch it at once.
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * The folder of the part `name`, which has its version in it. Where it is not there yet, `fill`
 * fills a new folder first. Throws what `fill` throws.
 */
export async function cachedPart(
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
