// A list that operators maintain in files, such as API keys: loaded at the start, reloaded within
// seconds of a change, and kept while changed files cannot be read. A faulty line is ignored and
// reported, so that a mistake in one line neither stops a process nor disables the other lines.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pause, within } from '../resilience/deadline.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createBoundedAccess } from './bounded-access.ts'
import { scanFiles, watchFiles } from './watch-files.ts'

/** The result of a load. */
export interface LoadedList<T> {
  readonly value: T
  readonly entries: number
  /** One sentence per ignored line, with its file and number; at most FAULTS_MAX are logged. */
  readonly faults: readonly string[]
}

/** A list in use. */
export interface WatchedList<T> {
  /** The value of the last successful load. */
  readonly current: () => T
  /** Stops watching. */
  readonly stop: () => Promise<void>
}

/** What to watch, and how to load it. */
export interface WatchedListOptions<T> {
  /** The name in logs and metrics, such as `api-keys`. */
  readonly name: string
  /** A file, or a folder of files; `undefined`: the list is empty. */
  readonly path: string | undefined
  /** The end of the names of files in a folder, such as `.txt`; others are ignored. */
  readonly suffix: string
  /** The value until the first load. */
  readonly empty: T
  /** Reads and parses these files. If it rejects, the value is kept and the load retried. */
  readonly load: (files: readonly string[]) => Promise<LoadedList<T>>
  readonly log: Log
  readonly metrics: Pick<Metrics, 'listEntries' | 'listFaults'>
}

/** A file of a list. */
export interface ListFile {
  readonly path: string
  readonly content: string
}

const FILES_MAX = 64
/** Maximum size of a file of a list. */
export const FILE_BYTES_MAX = 8 * 1024 * 1024
const BYTES_MAX = 32 * 1024 * 1024
const FAULTS_MAX = 10
/** How long the start of a process waits for the first load before it uses the empty list. */
const FIRST_LOAD_MS_MAX = 30_000
/** The deadlines of a load, and of a stop during a load, in case the disk hangs. */
const LOAD_MS_MAX = 30_000
const STOP_MS_MAX = 500

/** Watches a list. Resolves after the first load, even if it failed. */
export async function watchList<T>(options: WatchedListOptions<T>): Promise<WatchedList<T>> {
  const { name, path, suffix, empty, log, metrics } = options
  let value = empty
  let loadedFiles: readonly string[] = [] // the files of the value, if it has entries
  metrics.listEntries.set({ list: name }, 0)
  metrics.listFaults.set({ list: name }, 0)
  if (path === undefined) return { current: () => value, stop: () => Promise.resolve() }
  const { promise: firstLoad, resolve: onFirstLoad } = Promise.withResolvers<undefined>()
  const access = createBoundedAccess(LOAD_MS_MAX)
  const scan = async () => {
    const files = await filesOf(path, suffix).catch(() => []) // the load reports the error
    return scanFiles([path, ...(files ?? [])])
  }
  const loadOnce = async () => {
    const { state } = await scan()
    const found = await filesOf(path, suffix)
    if (found === undefined) log.warn({ list: name, path }, 'the path of a list does not exist')
    const files = found ?? []
    const missing = loadedFiles.find((file) => !files.includes(file))
    if (missing !== undefined) throw new Error(`${missing} no longer exists: ${HINT}`)
    const loaded = await options.load(files)
    if ((await scan()).state !== state) throw new Error('the files were changed during the load')
    const hasOnlyFaults = loaded.entries === 0 && loaded.faults.length > 0
    if (hasOnlyFaults && loadedFiles.length > 0) throw new Error(`no line is valid: ${HINT}`)
    loadedFiles = loaded.entries > 0 ? files : []
    return loaded
  }
  const reload = async () => {
    try {
      const loaded = await access(
        loadOnce,
        () => new Error(`the load took longer than ${LOAD_MS_MAX} ms`),
      )
      value = loaded.value
      report(options, loaded)
      return undefined
    } catch (err) {
      metrics.listFaults.set({ list: name }, 1)
      log.error({ err, list: name, path }, 'list not loaded: the last loaded one, if any, is used')
      return 'retry'
    } finally {
      onFirstLoad(undefined)
    }
  }
  const watch = watchFiles({
    scan,
    onChange: reload,
    onError(err) {
      log.error({ err, list: name, path }, 'list not watched: polling continues')
    },
  })
  const timeout = () => new Error(`the first load took longer than ${FIRST_LOAD_MS_MAX} ms`)
  await within(FIRST_LOAD_MS_MAX, firstLoad, timeout).catch((err: unknown) => {
    metrics.listFaults.set({ list: name }, 1)
    log.error({ err, list: name, path }, 'list not loaded yet: starting with an empty list')
  })
  return {
    current: () => value,
    stop: async () => {
      await Promise.race([watch.stop(), pause(STOP_MS_MAX)])
    },
  }
}

/** For a missing file, or a list without a valid line: both are probably mistakes. */
const HINT = 'to remove the entries of a file, leave an empty file'

/** Reads files. Throws if one has more than 8 MiB, or all together more than 32 MiB. */
export async function readListFiles(paths: readonly string[]): Promise<ListFile[]> {
  const files: ListFile[] = []
  let bytes = 0
  for (const path of paths) {
    const { size } = await stat(path)
    if (size > FILE_BYTES_MAX) {
      throw new Error(`${path} has ${size} bytes: at most ${FILE_BYTES_MAX} are allowed`)
    }
    bytes += size
    if (bytes > BYTES_MAX) throw new Error(`the files have more than ${BYTES_MAX} bytes`)
    files.push({ path, content: await readFile(path, 'utf8') })
  }
  return files
}

function report(
  { name, path, log, metrics }: WatchedListOptions<unknown>,
  { entries, faults }: LoadedList<unknown>,
): void {
  metrics.listEntries.set({ list: name }, entries)
  metrics.listFaults.set({ list: name }, faults.length)
  log.info({ list: name, entries }, 'list loaded')
  if (faults.length === 0) return
  const shown = faults.slice(0, FAULTS_MAX)
  log.error({ list: name, path, faults: faults.length, first: shown }, 'lines of a list ignored')
}

/**
 * The files of a list, sorted: the file at `path`, or those in the folder whose names end with
 * `suffix`; `undefined` if the path does not exist. Throws if there are more than 64.
 */
export async function filesOf(path: string, suffix: string): Promise<string[] | undefined> {
  const stats = await stat(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  })
  if (stats === undefined) return undefined
  if (!stats.isDirectory()) return [path]
  // Names that start with a dot are those of Kubernetes' version folders, or hidden.
  const isOfList = (name: string) => name.endsWith(suffix) && !name.startsWith('.')
  const names = (await readdir(path)).filter(isOfList).sort()
  if (names.length > FILES_MAX) {
    throw new Error(`${path} has ${names.length} files: at most ${FILES_MAX} are allowed`)
  }
  return names.map((name) => join(path, name))
}
