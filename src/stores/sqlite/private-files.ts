// Restricts access to the database, which holds the code secret: the folder has mode 0700, its
// files 0600. SQLite creates its journals with the mode of the database.
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
/** A folder in the root of some file systems; the database's own folder may be such a root. */
const ownedByFileSystem = 'lost+found'

/** A path that other users could access; `reason`: why its mode was not changed. */
export interface RestrictedPath {
  readonly path: string
  /** The access bits found, in octal. */
  readonly mode: string
  readonly reason?: string
}

/**
 * Creates the folder with mode 0700 and the database files with 0600; removes access by group and
 * others from existing ones and returns them. A folder that also holds other files keeps its mode,
 * because other users may need access. Throws the errors of the file system.
 */
export function restrictAccess(folder: string): readonly RestrictedPath[] {
  createFolder(folder, FOLDER_MODE)
  const names = readdirSync(folder)
  const foreign = names.find((name) => !databaseFile.test(name) && name !== ownedByFileSystem)
  for (const name of created) closeSync(openSync(join(folder, name), 'a', FILE_MODE))
  return [
    ...tighten(folder, FOLDER_MODE, foreign && `it also holds other files, such as '${foreign}'`),
    ...[...new Set([...created, ...names])]
      .filter((name) => databaseFile.test(name))
      .flatMap((name) => tighten(join(folder, name), FILE_MODE)),
  ]
}

/** Removes access by group and others, unless `reason` prevents it. */
function tighten(path: string, allowed: number, reason?: string): readonly RestrictedPath[] {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return [] // a journal that SQLite has just deleted
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

/** Creates the folder and its parents. mkdirSync with `recursive` never returns in /proc. */
function createFolder(path: string, mode?: number): void {
  if (existsSync(path)) return
  const parent = dirname(path)
  if (parent !== path) createFolder(parent)
  try {
    mkdirSync(path, mode)
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!(statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false)) throw error
  }
}
