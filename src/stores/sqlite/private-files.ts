// Keeps others from reading the database, which holds the code secret: the folder has mode 0700,
// its files 0600. SQLite gives its journals the mode of the database.
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const ACCESS_BITS = 0o777
const STICKY_BIT = 0o1000

/** Files of the database in its folder, by name. */
const created = ['lock.db', 'curtail.db'] as const
const databaseFile = /^(lock|curtail)\.db(-(wal|shm|journal))?$/
/** What else a folder may hold that is the database's alone: a file system of its own has it. */
const ownedByFileSystem = 'lost+found'

/** What was found readable by others, and whether it could be changed. */
export interface Tightened {
  readonly path: string
  /** Access bits as found, octal. */
  readonly mode: string
  readonly reason?: string
}

/**
 * Creates the folder with mode 0700 and the files of the database with 0600, and removes
 * access by group and others from existing ones; the result lists those. A folder that holds other
 * files too keeps its mode, as others may need it. Throws the errors of the file system.
 */
export function makePrivate(folder: string): readonly Tightened[] {
  makeFolder(folder, FOLDER_MODE)
  const names = readdirSync(folder)
  const foreign = names.find((name) => !databaseFile.test(name) && name !== ownedByFileSystem)
  for (const name of created) closeSync(openSync(join(folder, name), 'a', FILE_MODE))
  return [
    ...tighten(folder, FOLDER_MODE, foreign && `it holds other files too, such as '${foreign}'`),
    ...[...new Set([...created, ...names])]
      .filter((name) => databaseFile.test(name))
      .flatMap((name) => tighten(join(folder, name), FILE_MODE)),
  ]
}

/** Removes access by group and others, unless there is a reason not to. */
function tighten(path: string, allowed: number, reason?: string): readonly Tightened[] {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return [] // a journal that SQLite has deleted meanwhile
  const bits = found.mode & ACCESS_BITS
  if ((bits & ~allowed) === 0) return []
  const mode = bits.toString(8).padStart(4, '0')
  if ((found.mode & STICKY_BIT) !== 0) return [{ path, mode, reason: 'it is a shared folder' }]
  if (reason !== undefined) return [{ path, mode, reason }]
  try {
    chmodSync(path, (found.mode & ~ACCESS_BITS & 0o7777) | (bits & allowed))
    return [{ path, mode }]
  } catch (error) {
    return [{ path, mode, reason: (error as Error).message }]
  }
}

/** Creates the folder and its parents. The `recursive` of mkdirSync never returns in /proc. */
function makeFolder(path: string, mode?: number): void {
  if (existsSync(path)) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  try {
    mkdirSync(path, mode)
  } catch (error) {
    // Another process may have created it just now.
    if (!(statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false)) throw error
  }
}
