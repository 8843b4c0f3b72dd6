// Parses rule files, or xDS resources, in a worker thread and builds the rules in the main thread
// slice by slice, so that decisions continue. Time and memory are bounded; the thread parses one
// set and exits.
import { getHeapStatistics } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { RuleResource } from '../../limits/decode-config.ts'
import type { RuleFault } from '../../limits/rule.ts'
import { RuleBuilder, type RuleRecord } from '../../limits/rule-records.ts'
import type { ParsedRuleFiles, ParseOptions, RuleFile } from '../../limits/parse-rules.ts'
import { within } from '../../resilience/deadline.ts'
import { TransientParseError } from './rule-source.ts'

/** The input of the thread. */
export interface ParseTask {
  readonly files: readonly (RuleFile | RuleResource)[]
  readonly options: ParseOptions
  readonly recordsPerSlice: number
}

/** Messages of the thread: first the faults or the warnings, then slices; the last is empty. */
export type ThreadMessage =
  | { readonly faults: readonly RuleFault[] }
  | { readonly warnings: readonly RuleFault[]; readonly descriptors: number }
  | { readonly slice: readonly RuleRecord[] }

/** A parser that runs in a thread. */
export interface ThreadParser {
  /** Throws an error if the thread fails or times out. */
  parse(files: readonly (RuleFile | RuleResource)[]): Promise<ParsedRuleFiles>
  /** Aborts the parses in flight and rejects later ones; their callers receive an error. */
  stop(): Promise<void>
}

const PARSE_MS_MAX = 60_000
/** Building one slice takes far less than 5 ms. */
const RECORDS_PER_SLICE = 100
/**
 * Bound of the thread's heap; 100,000 descriptors need 160 MB. If --max-old-space-size is set, as
 * by the chart and the npm scripts, V8 applies it to each thread instead of this bound.
 */
const HEAP_MB_MAX = 256
/** Heap of a descriptor with its rule: 680 bytes were measured; the rest is a margin. */
const DESCRIPTOR_BYTES = 800
const MIB = 1024 * 1024
const ADVICE = 'raise --max-old-space-size, or heapMebibytes of the chart'

/** Creates the parser; each `parse` starts a thread with these bounds of time and heap. */
export function createThreadParser(
  options: ParseOptions,
  msMax = PARSE_MS_MAX,
  heapMbMax = HEAP_MB_MAX,
): ThreadParser {
  const threads = new Set<Worker>()
  let isStopped = false
  return {
    async parse(files) {
      if (isStopped) throw new Error('the process is stopping')
      const task: ParseTask = { files, options, recordsPerSlice: RECORDS_PER_SLICE }
      const thread = startThread(task, heapMbMax)
      threads.add(thread)
      const timeout = () => new Error(`parsing the rules took longer than ${msMax} ms`)
      try {
        return await within(msMax, collect(thread), timeout)
      } finally {
        threads.delete(thread)
        await thread.terminate()
      }
    },
    async stop() {
      isStopped = true
      await Promise.all([...threads].map((thread) => thread.terminate()))
    },
  }
}

function startThread(task: ParseTask, heapMbMax: number): Worker {
  try {
    return new Worker(new URL('./rule-thread.ts', import.meta.url), {
      workerData: task,
      // Replaces the options of the process, so that the thread does not import tracing.ts.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: heapMbMax },
    })
  } catch (cause) {
    // Usually the limit of processes and threads: EAGAIN.
    const { message } = cause as Error
    const failed = 'the thread that parses the rules cannot start'
    throw new TransientParseError(`${failed}: ${message}`, { cause })
  }
}

function collect(thread: Worker): Promise<ParsedRuleFiles> {
  const builder = new RuleBuilder()
  let warnings: readonly RuleFault[] = []
  // Deferred, so that the event loop always runs between two slices.
  const requestNext = () => {
    setImmediate(() => {
      thread.postMessage('next')
    })
  }
  return new Promise((resolve, reject) => {
    const handle = (message: ThreadMessage) => {
      if ('faults' in message) resolve({ faults: message.faults })
      else if ('slice' in message && message.slice.length === 0) {
        resolve({ rules: builder.rules, warnings })
      } else {
        if ('warnings' in message) {
          checkHeap(message.descriptors)
          warnings = message.warnings
        } else for (const record of message.slice) builder.add(record)
        requestNext()
      }
    }
    thread.on('message', (message: ThreadMessage) => {
      try {
        handle(message)
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
    thread.on('error', (error) => {
      const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY'
      const message = isTooLarge
        ? `the rules need more heap than the thread that parses them has: ${ADVICE}`
        : 'the thread that parses the rules failed'
      reject(new Error(message, { cause: error }))
    })
    thread.on('exit', () => {
      reject(new Error('the thread that parses the rules stopped'))
    })
  })
}

/** Throws an error if the main thread's heap is too small for this number of descriptors. */
function checkHeap(descriptors: number): void {
  const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics()
  const needed = descriptors * DESCRIPTOR_BYTES
  if (needed <= limit - used) return
  const [neededMib, usedMib, limitMib] = [needed, used, limit].map((bytes) =>
    String(Math.ceil(bytes / MIB)),
  )
  throw new Error(
    `the rules need about ${neededMib} MiB of heap, and ${usedMib} MiB of ${limitMib} MiB are ` +
      `in use: ${ADVICE}`,
  )
}
