// The location of the rule files, from the settings RUNTIME_* of envoyproxy/ratelimit: they are in
// RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, and change by a swap of the symbolic link
// RUNTIME_ROOT or, if it is no link or with RUNTIME_WATCH_ROOT=false, in place. Does not parse the
// files.
import { dirname, join, resolve } from 'node:path'
import {
  type FileTree,
  isFolder,
  FileTreeError,
  symlinkStamp,
  listTree,
  type ReadFile,
  readTree,
  stampOf,
} from '../../process/file-tree.ts'
import type { FileState } from '../../process/watch-files.ts'
import type { RuleFileConfig } from '../settings/settings.ts'

/** The settings RUNTIME_*. */
export type RuleLocation = Pick<
  RuleFileConfig,
  | 'RUNTIME_ROOT'
  | 'RUNTIME_SUBDIRECTORY'
  | 'RUNTIME_APPDIRECTORY'
  | 'RUNTIME_WATCH_ROOT'
  | 'RUNTIME_IGNOREDOTFILES'
>

/** The rule files. */
export interface RuleFiles {
  /** The folder, for error messages. */
  readonly folder: string
  /** Reads a consistent snapshot of the files. Throws FileTreeError. */
  readonly read: () => Promise<readonly ReadFile[]>
  /** The state of the files, for `watchFiles`. */
  readonly scan: () => Promise<FileState>
}

const FILES_MAX = 1000
const BYTES_MAX = 16 * 1024 * 1024

/** The rule files of a location. */
export function ruleFilesOf(location: RuleLocation): RuleFiles {
  const { RUNTIME_APPDIRECTORY: appDirectory, RUNTIME_WATCH_ROOT: watchesRoot } = location
  const root = resolve(location.RUNTIME_ROOT) // a trailing slash would resolve the link
  const base = join(root, location.RUNTIME_SUBDIRECTORY)
  const folder = join(base, appDirectory)
  const tree: FileTree = {
    // As in envoyproxy/ratelimit, the set of files and their names depend on watchesRoot.
    ...(watchesRoot
      ? { folder: base, keyPrefix: `${appDirectory.replaceAll('/', '.')}.` }
      : { folder, keyPrefix: '' }),
    ignoresDotFiles: location.RUNTIME_IGNOREDOTFILES,
    filesMax: FILES_MAX,
    bytesMax: BYTES_MAX,
  }
  return {
    folder,
    async read() {
      const files = await readTree(tree)
      // A missing folder is an error, not an empty set of rules.
      if (files.length > 0 || (await isFolder(folder))) return files
      throw new FileTreeError(folder, 'the folder does not exist')
    },
    async scan() {
      const folders = watchesRoot ? [dirname(root)] : []
      const link = watchesRoot ? await symlinkStamp(root) : undefined
      if (link !== undefined) return { state: link, folders }
      try {
        const listing = await listTree(tree)
        return { state: stampOf(listing), folders: [...folders, ...listing.folders] }
      } catch (error) {
        return { state: `error: ${(error as Error).message}`, folders }
      }
    },
  }
}
