// The location of the rule files, with the reference's meaning of RUNTIME_*: they are in
// RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, and change by a swap of the symbolic link
// RUNTIME_ROOT or, with RUNTIME_WATCH_ROOT=false, in location. Does not parse them.
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
  /** The folder, for messages. */
  readonly folder: string
  /** Reads a consistent snapshot of them. Throws FileTreeError. */
  read(): Promise<readonly ReadFile[]>
  /** Their state, for `watchFiles`. Throws FileTreeError. */
  readState(): Promise<string>
  /** Folders to watch, for `watchFiles`. */
  folders(): Promise<readonly string[]>
}

const FILES_MAX = 1000
const BYTES_MAX = 16 * 1024 * 1024

/** The rule files of a location. */
export function ruleFilesOf(location: RuleLocation): RuleFiles {
  const { subdirectory, appDirectory, watchesRoot, ignoresDotFiles } = location
  const root = resolve(location.root) // a trailing slash would follow the link
  const folder = join(root, subdirectory, appDirectory)
  const bounds = { ignoresDotFiles, filesMax: FILES_MAX, bytesMax: BYTES_MAX }
  // Which files count and how they are named follows the reference, which depends on watchesRoot.
  const tree: FileTree = watchesRoot
    ? { ...bounds, folder: join(root, subdirectory), keyPrefix: keyPrefixOf(appDirectory) }
    : { ...bounds, folder, keyPrefix: '' }
  const isSwapped = async () => watchesRoot && (await symlinkStamp(root)) !== undefined
  return {
    folder,
    async read() {
      const files = await readTree(tree)
      // A missing folder is an error; it does not mean "no rules".
      if (files.length > 0 || (await isFolder(folder))) return files
      throw new FileTreeError(folder, 'there is no such folder')
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
