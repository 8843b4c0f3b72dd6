// Where rule files lie, with the reference's meaning of RUNTIME_*: in
// RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, changed by the swap of the link
// RUNTIME_ROOT or, with RUNTIME_WATCH_ROOT=false, in place. Never looks at what they say.
import { dirname, join, resolve } from 'node:path'
import {
  type FileTree,
  isFolder,
  FileTreeError,
  linkStamp,
  listTree,
  type ReadFile,
  readTree,
  stampOf,
} from '../../process/file-tree.ts'

/** What RUNTIME_* say. */
export interface RulePlace {
  readonly root: string
  readonly subdirectory: string
  readonly appDirectory: string
  readonly watchesRoot: boolean
  readonly ignoresDotFiles: boolean
}

/** The rule files. */
export interface RuleFiles {
  /** The folder, for people. */
  readonly folder: string
  /** Reads them as they are at one moment. Throws FileTreeError. */
  read(): Promise<readonly ReadFile[]>
  /** Their state, as `watchFiles` wants it. Throws FileTreeError. */
  look(): Promise<string>
  /** Folders that tell of changes, as `watchFiles` wants them. */
  folders(): Promise<readonly string[]>
}

const FILES_MAX = 1000
const BYTES_MAX = 16 * 1024 * 1024

/** The rule files of a place. */
export function ruleFilesOf(place: RulePlace): RuleFiles {
  const { subdirectory, appDirectory, watchesRoot, ignoresDotFiles } = place
  const root = resolve(place.root) // a slash at its end would look through the link
  const folder = join(root, subdirectory, appDirectory)
  const bounds = { ignoresDotFiles, filesMax: FILES_MAX, bytesMax: BYTES_MAX }
  // The names of the files, and what belongs to them, are the reference's for each way of watching.
  const tree: FileTree = watchesRoot
    ? { ...bounds, folder: join(root, subdirectory), keyPrefix: keyPrefixOf(appDirectory) }
    : { ...bounds, folder, keyPrefix: '' }
  const isSwapped = async () => watchesRoot && (await linkStamp(root)) !== undefined
  return {
    folder,
    async read() {
      const files = await readTree(tree)
      // A folder that is missing is a mistake, not a wish to have no rules.
      if (files.length > 0 || (await isFolder(folder))) return files
      throw new FileTreeError(folder, 'there is no such folder')
    },
    async look() {
      const link = watchesRoot ? await linkStamp(root) : undefined
      return link ?? stampOf(await listTree(tree))
    },
    async folders() {
      const parent = watchesRoot ? [dirname(root)] : []
      if (await isSwapped()) return parent
      const listed = await listTree(tree).catch(() => undefined) // `look` tells of what is wrong
      return [...parent, ...(listed?.folders ?? [])]
    },
  }
}

function keyPrefixOf(appDirectory: string): string {
  return `${appDirectory.replaceAll('/', '.')}.`
}
