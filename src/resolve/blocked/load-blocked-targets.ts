// Loads blocked targets from files: if their total size is small, in the main thread, in steps
// between which requests are served; else in a worker thread, with bounded time and memory.
import { randomInt } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type BlockedTargets, createBlockedTargets } from '../../links/blocked-targets.ts'
import type { LoadedList } from '../../process/watched-list.ts'
import { within } from '../../resilience/deadline.ts'
import { buildBlockedTable, type BuiltTable } from './build-blocked-table.ts'

/** The input of a build, in either thread. */
export interface BuildTask {
  readonly paths: readonly string[]
  /** The total size of the files. */
  readonly bytes: number
  readonly seed: number
}

/** Loads lists; `undefined` is a list without entries. */
export interface BlockedTargetsLoader {
  /** Throws an error if the files are too large or cannot be read. */
  load(paths: readonly string[]): Promise<LoadedList<BlockedTargets | undefined>>
  /** Stops the threads: loads in them reject. */
  stop(): Promise<void>
}

const MIB = 1024 * 1024
/** Maximum total size of the files. */
export const FILES_BYTES_MAX = 64 * MIB
/** Files of at least this total size are loaded by a thread. */
export const THREAD_BYTES_MIN = MIB / 4
/** Less than LOAD_MS_MAX of watched-list.ts: the thread stops before that load times out. */
const THREAD_MS_MAX = 25_000
/**
 * Bound of the thread's heap, which contains neither the files nor the table. If
 * --max-old-space-size is set, V8 applies it to each thread instead of this bound.
 */
const HEAP_MB_MAX = 64

/** Creates the loader. */
export function createBlockedTargetsLoader(msMax = THREAD_MS_MAX): BlockedTargetsLoader {
  const threads = new Set<Worker>()
  let isStopped = false
  const buildInThread = async (task: BuildTask): Promise<BuiltTable> => {
    if (isStopped) throw new Error('the process is stopping')
    const thread = new Worker(new URL('./blocked-thread.ts', import.meta.url), {
      workerData: task,
      // Replaces the options of the process, so that the thread does not import tracing.ts.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    })
    threads.add(thread)
    const timeout = () => new Error(`loading the files took longer than ${msMax} ms`)
    try {
      return await within(msMax, resultOf(thread), timeout)
    } finally {
      threads.delete(thread)
      await thread.terminate()
    }
  }
  return {
    async load(paths) {
      const bytes = await sizeOf(paths)
      if (bytes > FILES_BYTES_MAX) {
        throw new Error(`the files have ${bytes} bytes: at most ${FILES_BYTES_MAX} are allowed`)
      }
      const task = { paths, bytes, seed: randomInt(2 ** 32) }
      const build = bytes < THREAD_BYTES_MIN ? buildInSteps : buildInThread
      const { table, entries, faults } = await build(task)
      return { value: entries === 0 ? undefined : createBlockedTargets(table), entries, faults }
    },
    async stop() {
      isStopped = true
      await Promise.all([...threads].map((thread) => thread.terminate()))
    },
  }
}

async function sizeOf(paths: readonly string[]): Promise<number> {
  let bytes = 0
  for (const path of paths) bytes += (await stat(path)).size
  return bytes
}

async function buildInSteps({ paths, bytes, seed }: BuildTask): Promise<BuiltTable> {
  const files = []
  for (const path of paths) files.push({ path, content: await readFile(path) })
  const building = buildBlockedTable(files, { bytes, seed })
  let step = building.next()
  while (step.done !== true) {
    await setImmediate()
    step = building.next()
  }
  return step.value
}

function resultOf(thread: Worker): Promise<BuiltTable> {
  return new Promise((resolve, reject) => {
    thread.on('message', resolve)
    thread.on('error', reject)
    thread.on('exit', () => {
      reject(new Error('the worker thread that loads the files exited before it finished'))
    })
  })
}
