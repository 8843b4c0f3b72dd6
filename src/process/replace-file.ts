// Replaces a file atomically: a crash leaves either the previous content or the new one. The file
// keeps its mode, its owner and its group, so that the service can still read it.
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { messageOf } from '../resilience/message-of.ts'
import { orIfMissing } from './file-errors.ts'
import { UnknownOutcomeError } from './list-target.ts'

interface Owner {
  readonly uid: number
  readonly gid: number
}

/**
 * Replaces a file, or creates it with `newMode`. A file that root creates has the owner of its
 * folder. Throws UnknownOutcomeError if the new content may not survive a crash.
 */
export async function replaceFile(path: string, content: string, newMode: number): Promise<void> {
  // The name starts with a dot: such a file is not read as a file of a list.
  const temporary = join(dirname(path), `.${basename(path)}.tmp`)
  const before = await orIfMissing(stat(path), undefined)
  await rm(temporary, { force: true }) // of a command that was killed
  try {
    await using handle = await open(temporary, 'wx', 0o600)
    await handle.writeFile(content)
    const owner = before ?? (process.getuid?.() === 0 ? await stat(dirname(path)) : undefined)
    if (owner !== undefined) await changeOwner(handle, owner)
    await handle.chmod((before?.mode ?? newMode) & 0o777)
    await handle.sync()
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await rename(temporary, path)
  try {
    await using folder = await open(dirname(path), 'r')
    await folder.sync()
  } catch (error) {
    throw new UnknownOutcomeError(`Cannot sync ${dirname(path)}: ${messageOf(error)}`)
  }
}

async function changeOwner(handle: FileHandle, { uid, gid }: Owner): Promise<void> {
  const current = await handle.stat()
  if (current.uid === uid && current.gid === gid) return
  try {
    await handle.chown(uid, gid)
  } catch (error) {
    throw new Error(
      `the file must belong to user ${uid} and group ${gid}, which user ${current.uid} cannot ` +
        `set: run the command as user ${uid} or as root (${messageOf(error)})`,
    )
  }
}
