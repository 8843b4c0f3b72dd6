// The location of the rule files, from the settings RUNTIME_* of envoyproxy/ratelimit: they are in
// RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, and change by a swap of the symbolic link
// RUNTIME_ROOT or, with RUNTIME_WATCH_ROOT=false, in place. Does not parse the files.
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

/** The settings RUNTIME_*. */
export interface RuleLocation {
  readonly root: string
  readonly subdirectory: string
  readonly appDirectory: string
  readonly watchesRoot: boolean
  readonly ignoresDotFiles: boolean
}

/** The rule files. */
export interface RuleFiles {
  /** The folder, for error messages. */
  readonly folder: string
  /** Reads a consistent snapshot of the files. Throws FileTreeError. */
  read(): Promise<readonly ReadFile[]>
  /** The state of the files, for `watchFiles`. Throws FileTreeError. */
  readState(): Promise<string>
  /** Folders to watch, for `watchFiles`. */
  folders(): Promise<readonly string[]>
}

const FILES_MAX = 1000
const BYTES_MAX = 16 * 1024 * 1024

/** The rule files of a location. */
export function ruleFilesOf(location: RuleLocation): RuleFiles {
  const { subdirectory, appDirectory, watchesRoot, ignoresDotFiles } = location
  const root = resolve(location.root) // without a trailing slash, which would resolve the link
  const folder = join(root, subdirectory, appDirectory)
  const bounds = { ignoresDotFiles, filesMax: FILES_MAX, bytesMax: BYTES_MAX }
  // As in envoyproxy/ratelimit, the set of files and their names depend on watchesRoot.
  const tree: FileTree = watchesRoot
    ? { ...bounds, folder: join(root, subdirectory), keyPrefix: keyPrefixOf(appDirectory) }
    : { ...bounds, folder, keyPrefix: '' }
  const isSwapped = async () => watchesRoot && (await symlinkStamp(root)) !== undefined
  return {
    folder,
    async read() {
      const files = await readTree(tree)
      // A missing folder is an error, not an empty set of rules.
      if (files.length > 0 || (await isFolder(folder))) return files
      throw new FileTreeError(folder, 'the folder does not exist')
    },
    async readState() {
      const link = watchesRoot ? await symlinkStamp(root) : undefined
      return link ?? stampOf(await listTree(tree))
    },
    async folders() {
      const parent = watchesRoot ? [dirname(root)] : []
      if (await isSwapped()) return parent
      const listed = await listTree(tree).catch(() => undefined) // readState reports the error
      return [...parent, ...(listed?.folders ?? [])]
    },
  }
}

function keyPrefixOf(appDirectory: string): string {
  return `${appDirectory.replaceAll('/', '.')}.`
}
