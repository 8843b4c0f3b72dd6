// Tells when files have changed: the system's notices make it quick, and looking every few seconds
// makes it certain. It never reads a file's contents; who is told reads all.
import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { runInBackground } from '../resilience/background.ts'
import { pause, within } from '../resilience/deadline.ts'

/** What is watched, and who is told. */
export interface FilesWatched {
  /** The state of the files as a text that differs when they do. An error is a state too. */
  readonly look: () => Promise<string>
  /** Folders whose notices are listened to: those that hold the files, or the link to them. */
  readonly folders: () => Promise<readonly string[]>
  /** Called once at the start, and after each change, when the files have come to rest. */
  readonly onChange: () => Promise<unknown>
  /** Told of what fails; the watch goes on. */
  readonly onError: (error: unknown) => void
  /** Between two looks without a notice; 2 s if not given. */
  readonly pollMs?: number
  /** How long files must stay as they are to count as written; 100 ms if not given. */
  readonly settleMs?: number
}

/** A running watch. */
export interface FileWatch {
  /** Resolves when it has ended. */
  stop(): Promise<void>
}

const POLL_MS = 2000
const SETTLE_MS = 100
/** Files that are written on and on are taken as they are after so many looks. */
const SETTLE_LOOKS_MAX = 20
const LOOK_MS_MAX = 10_000
const FOLDERS_MAX = 64

/** Begins to watch. */
export function watchFiles(watched: FilesWatched): FileWatch {
  const { onChange, onError, pollMs = POLL_MS, settleMs = SETTLE_MS } = watched
  let seen: string | undefined
  let noticing: NodeJS.Timeout | undefined
  const notices = listenTo({
    onNotice: () => {
      noticing ??= setTimeout(() => {
        noticing = undefined
        looking.nudge()
      }, settleMs)
    },
    onError,
  })
  const look = () => lookOnce(watched.look)
  const looking = runInBackground({
    everyMs: pollMs,
    task: async (signal) => {
      await notices.keepTo(await watched.folders())
      let now = await look()
      if (now === seen) return
      for (let looks = 0; looks < SETTLE_LOOKS_MAX && !signal.aborted; looks++) {
        await pause(settleMs, signal)
        const before = now
        now = await look()
        if (now === before) break
      }
      if (signal.aborted) return
      seen = now
      await onChange()
    },
    onError,
  })
  return {
    async stop() {
      clearTimeout(noticing)
      notices.close()
      await looking.stop()
      clearTimeout(noticing)
    },
  }
}

async function lookOnce(look: () => Promise<string>): Promise<string> {
  try {
    return await within(LOOK_MS_MAX, look(), () => new Error('looking at the files took too long'))
  } catch (error) {
    return `error: ${(error as Error).message}`
  }
}

/** The system's notices of some folders; a folder that was replaced is listened to anew. */
function listenTo(on: { onNotice: () => void; onError: (error: unknown) => void }) {
  const listening = new Map<string, { readonly watcher: FSWatcher; readonly identity: string }>()
  let isClosed = false
  let hasFailed = false
  const end = (folder: string) => {
    listening.get(folder)?.watcher.close()
    listening.delete(folder)
  }
  const begin = (folder: string, identity: string) => {
    try {
      const watcher = watch(folder, { persistent: false }, on.onNotice)
      watcher.on('error', () => {
        end(folder) // the next look listens anew
      })
      listening.set(folder, { watcher, identity })
    } catch (error) {
      // Out of watches, as a rule: looking every few seconds goes on without them.
      if (!hasFailed) on.onError(error)
      hasFailed = true
    }
  }
  return {
    async keepTo(folders: readonly string[]) {
      const wanted = new Set(folders.slice(0, FOLDERS_MAX))
      for (const folder of listening.keys()) if (!wanted.has(folder)) end(folder)
      for (const folder of wanted) {
        const identity = await identityOf(folder)
        if (listening.get(folder)?.identity === identity || isClosed) continue
        end(folder)
        if (identity !== undefined) begin(folder, identity)
      }
    },
    close() {
      isClosed = true
      for (const folder of listening.keys()) end(folder)
    },
  }
}

/** Which folder a path leads to now; `undefined` where none. */
async function identityOf(folder: string): Promise<string | undefined> {
  // One that is not there now is seen by the next look; a number may come again, a birth does not.
  const at = await stat(folder, { bigint: true }).catch(() => undefined)
  return at === undefined ? undefined : `${at.dev} ${at.ino} ${at.birthtimeNs}`
}
