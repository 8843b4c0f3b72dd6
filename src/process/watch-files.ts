// Detects changes of files: by events of the operating system, for speed, and by polling every few
// seconds, for reliability. Never reads a file's contents; `onChange` reads them.
import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { runInBackground } from '../resilience/background.ts'
import { monotonicMs, pause } from '../resilience/deadline.ts'
import { createBoundedAccess } from './bounded-access.ts'
import { stampOfFile } from './file-tree.ts'

/** The state of the watched files. */
export interface FileState {
  /** Changes when the files do. */
  readonly state: string
  /** Folders whose events are used: those that contain the files, or the symlink to them. */
  readonly folders: readonly string[]
}

/** What to watch, and what to call. */
export interface WatchOptions {
  /** Lists the files without reading them. An error is reported once, and is not a change. */
  readonly scan: () => Promise<FileState>
  /**
   * Called once at the start, after each change once the files are stable, and after `reload`. If
   * it resolves to `retry`, because the files cannot be used now, it is called without a change: at
   * the next poll, then after delays that double up to one minute.
   */
  readonly onChange: () => Promise<unknown>
  /**
   * Called for each failure of `onChange`, and once for consecutive failures of scans or of event
   * watches. The watch continues.
   */
  readonly onError: (error: unknown) => void
  /** Polling interval without events. @default 2 s */
  readonly pollMs?: number
  /** How long files must stay unchanged to count as stable. @default 100 ms */
  readonly settleMs?: number
}

/** A running watch. */
export interface FileWatch {
  /** Calls `onChange` without a change: now, or directly after the current call. */
  readonly reload: () => void
  /** Resolves when the watch has stopped. */
  stop(): Promise<void>
}

const POLL_MS = 2000
const SETTLE_MS = 100
/** Files that never become stable are used as they are after this number of polls. */
const SETTLE_POLLS_MAX = 20
const SCAN_MS_MAX = 10_000
const RETRY_MS_MAX = 60_000
const FOLDERS_MAX = 64

/** The state of single files, which may be absent. Never throws. */
export async function scanFiles(paths: readonly string[]): Promise<FileState> {
  const stamps: string[] = []
  // One file after the other: if the disk hangs, only one thread of Node.js's pool is occupied.
  for (const path of paths) {
    const stats = await stat(path, { bigint: true }).catch(() => undefined) // it does not exist
    stamps.push(stats === undefined ? 'absent' : stampOfFile(stats))
  }
  // A mounted Secret changes by the swap of a symbolic link in the folder of the file.
  const folders = [...new Set(paths.map((path) => dirname(resolve(path))))]
  return { state: stamps.join('\n'), folders }
}

/** Starts to watch. */
export function watchFiles(options: WatchOptions): FileWatch {
  const { onChange, onError, pollMs = POLL_MS, settleMs = SETTLE_MS } = options
  let lastState: string | undefined
  let retryAtMs = Infinity
  let retryMs = pollMs
  let eventTimer: NodeJS.Timeout | undefined
  const events = watchFolders({
    onEvent: () => {
      eventTimer ??= setTimeout(() => {
        eventTimer = undefined
        polling.trigger()
      }, settleMs)
    },
    onError,
  })
  const scan = createScan(options, async ({ folders }) => events.setFolders(folders))
  const polling = runInBackground({
    everyMs: pollMs,
    task: async (signal) => {
      let state = await scan()
      const isChanged = state !== lastState
      if (!isChanged && monotonicMs() < retryAtMs) return
      for (let polls = 0; isChanged && polls < SETTLE_POLLS_MAX && !signal.aborted; polls++) {
        await pause(settleMs, signal)
        const before = state
        state = await scan()
        if (state === before) break
      }
      if (signal.aborted || state === undefined) return
      lastState = state
      retryAtMs = Infinity
      const isRetry = (await onChange()) === 'retry'
      if (isChanged || !isRetry) retryMs = pollMs
      if (!isRetry) return
      retryAtMs = Math.min(retryAtMs, monotonicMs() + retryMs)
      retryMs = Math.min(2 * retryMs, RETRY_MS_MAX)
    },
    onError,
  })
  return {
    reload() {
      retryAtMs = 0
      polling.trigger()
    },
    async stop() {
      clearTimeout(eventTimer)
      events.close()
      await polling.stop()
      clearTimeout(eventTimer)
    },
  }
}

/** Lists the files; resolves to `undefined` if that fails or times out: reads would hang, too. */
function createScan(
  { scan, onError }: WatchOptions,
  onScanned: (state: FileState) => Promise<void>,
): () => Promise<string | undefined> {
  const access = createBoundedAccess(SCAN_MS_MAX)
  const timeout = () => new Error('listing the files took too long')
  let hasFailed = false
  return async () => {
    try {
      const { state } = await access(async () => {
        const scanned = await scan()
        await onScanned(scanned)
        return scanned
      }, timeout)
      hasFailed = false
      return state
    } catch (error) {
      if (!hasFailed) onError(error)
      hasFailed = true
      return undefined
    }
  }
}

/** Events of the operating system for some folders; a replaced folder gets a new watch. */
function watchFolders(on: { onEvent: () => void; onError: (error: unknown) => void }) {
  const watches = new Map<string, { readonly watcher: FSWatcher; readonly identity: string }>()
  let isClosed = false
  let hasFailed = false
  const unwatch = (folder: string) => {
    watches.get(folder)?.watcher.close()
    watches.delete(folder)
  }
  const watchFolder = (folder: string, identity: string) => {
    try {
      const watcher = watch(folder, { persistent: false }, on.onEvent)
      watcher.on('error', () => {
        unwatch(folder) // the next poll restores the watch
      })
      watches.set(folder, { watcher, identity })
    } catch (error) {
      // Usually the limit of inotify watches: polling continues without events.
      if (!hasFailed) on.onError(error)
      hasFailed = true
    }
  }
  return {
    async setFolders(folders: readonly string[]) {
      const wanted = new Set(folders.slice(0, FOLDERS_MAX))
      for (const folder of watches.keys()) if (!wanted.has(folder)) unwatch(folder)
      for (const folder of wanted) {
        const identity = await identityOf(folder)
        if (watches.get(folder)?.identity === identity || isClosed) continue
        unwatch(folder)
        if (identity !== undefined) watchFolder(folder, identity)
      }
    },
    close() {
      isClosed = true
      for (const folder of watches.keys()) unwatch(folder)
    },
  }
}

/** The identity of the folder at a path; `undefined` if it is missing. */
async function identityOf(folder: string): Promise<string | undefined> {
  // A later poll finds a folder that is missing now. Inode numbers are reused, birth times are not.
  const stats = await stat(folder, { bigint: true }).catch(() => undefined)
  return stats === undefined ? undefined : `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`
}
