// An operator list in a file, or in the files of a folder. A change replaces a file atomically, and
// a lock of the folder excludes concurrent changes.
import { readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, parse } from 'node:path'
import { messageOf } from '../resilience/message-of.ts'
import { codeOf, orIfMissing } from './file-errors.ts'
import { lockFolder } from './list-lock.ts'
import {
  decodeDocument,
  type ListDocument,
  type ListTarget,
  UnknownOutcomeError,
} from './list-target.ts'
import { replaceFile } from './replace-file.ts'
import { OperatorError } from './role.ts'
import { FILE_BYTES_MAX, filesOf } from './watched-list.ts'

/** How to change the files. */
export interface FileTargetOptions {
  /** A file, which may be missing, or a folder. */
  readonly path: string
  /**
   * If `path` is a folder: the file to which lines are added, such as `api-keys.ndjson`. If it is
   * full, they are added to `api-keys-2.ndjson`, and so on.
   */
  readonly nameInFolder: string
  /** The mode of a new file; an existing one keeps its mode. */
  readonly mode: number
  /** How long to wait for the lock, in milliseconds. @default 10_000 */
  readonly lockMsMax?: number
}

/** Maximum number of files in a folder to which lines are added. */
const GROWING_FILES_MAX = 8
const LOCK_MS_MAX = 10_000
const unwritable = new Set<string | undefined>(['EACCES', 'EPERM', 'EROFS'])

/** Creates the target. */
export function createFileTarget(options: FileTargetOptions): ListTarget {
  const { path, nameInFolder, mode, lockMsMax = LOCK_MS_MAX } = options
  const reading = <T>(read: () => Promise<T>) => failAs(`Cannot read ${path}`, read)
  return {
    read: () => reading(async () => readFiles(await findFiles(path, nameInFolder))),
    async update(decide) {
      const files = await reading(() => findFiles(path, nameInFolder))
      const unlock = await lock(files, lockMsMax)
      try {
        const documents = await reading(async () => readFiles(await findFiles(path, nameInFolder)))
        const { contents, result } = decide(documents)
        let isChanged = false
        for (const [file, content] of contents) {
          try {
            await failAs(`Cannot write ${file}`, () => replaceFile(file, content, mode))
          } catch (error) {
            throw isChanged ? new UnknownOutcomeError(messageOf(error)) : error
          }
          isChanged = true
        }
        return result
      } finally {
        await unlock()
      }
    },
    whenFull: `a file has at most ${FILE_BYTES_MAX} bytes: use a folder with several files`,
  }
}

/** The files to which lines can be added, even if they do not exist, and the other files. */
interface Files {
  /** The folder of the list. */
  readonly folder: string
  readonly growing: readonly [main: string, ...more: string[]]
  readonly others: readonly string[]
}

async function findFiles(path: string, nameInFolder: string): Promise<Files> {
  const stats = await orIfMissing(stat(path), undefined)
  if (stats?.isDirectory() !== true) {
    const file = await resolveLinks(path)
    const folder = await orIfMissing(realpath(dirname(path)), dirname(file))
    return { folder, growing: [file], others: [] }
  }
  const { name: stem, ext } = parse(nameInFolder)
  const more = Array.from({ length: GROWING_FILES_MAX - 1 }, (_, at) => `${stem}-${at + 2}${ext}`)
  const growing = [nameInFolder, ...more]
  const present = (await filesOf(path, ext)) ?? []
  const others = present.filter((file) => !growing.includes(basename(file)))
  const inFolder = (name: string) => resolveLinks(join(path, name))
  return {
    folder: await resolveLinks(path),
    growing: [await inFolder(nameInFolder), ...(await Promise.all(more.map(inFolder)))],
    others: await Promise.all(others.map(resolveLinks)),
  }
}

/** The path without symlinks: a change must not replace a symlink. A file need not exist. */
async function resolveLinks(path: string): Promise<string> {
  const file = await orIfMissing(realpath(path), undefined)
  return file ?? join(await orIfMissing(realpath(dirname(path)), dirname(path)), basename(path))
}

async function readFiles({ growing, others }: Files): Promise<ListDocument[]> {
  const documents: ListDocument[] = []
  for (const name of [...growing, ...others]) {
    const bytes = await orIfMissing<Uint8Array>(readFile(name), new Uint8Array())
    const bytesMax = growing.includes(name) ? FILE_BYTES_MAX : 0
    documents.push({ name, content: decodeDocument(bytes), bytesMax })
  }
  return documents
}

/**
 * Locks the folder of the list, and the folders to which symlinks of its files point; returns a
 * function that unlocks them. All commands lock them in the same order. Throws OperatorError.
 */
async function lock(files: Files, msMax: number): Promise<() => Promise<void>> {
  const { folder, growing, others } = files
  const path = growing[0]
  const folders = new Set([folder, ...[...growing, ...others].map((file) => dirname(file))])
  const unlocks: (() => Promise<void>)[] = []
  const unlock = async () => {
    for (const unlockOne of unlocks.splice(0).reverse()) await unlockOne()
  }
  try {
    for (const one of [...folders].sort()) {
      try {
        unlocks.push(await lockFolder(one, msMax))
      } catch (error) {
        // A command cannot change files of such a folder either.
        if (one === dirname(path) || !unwritable.has(codeOf(error))) throw error
      }
    }
  } catch (error) {
    await unlock()
    throw new OperatorError(`Cannot write ${path}: ${messageOf(error)}`)
  }
  return async () => {
    try {
      await unlock()
    } catch (error) {
      throw new UnknownOutcomeError(`Cannot unlock ${path}: ${messageOf(error)}`)
    }
  }
}

async function failAs<T>(problem: string, access: () => Promise<T>): Promise<T> {
  try {
    return await access()
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${problem}: ${messageOf(error)}`)
  }
}
