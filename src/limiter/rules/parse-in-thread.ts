// Parses rule files in a worker thread and builds the rules in the main thread slice by slice, so
// that decisions continue. Time and memory are bounded; the thread parses one set and exits.
import { Worker } from 'node:worker_threads'
import type { RuleFault } from '../../limits/rule.ts'
import { RuleBuilder, type RuleRecord } from '../../limits/rule-records.ts'
import type { ParsedRuleFiles, ParseOptions, RuleFile } from '../../limits/rules.ts'
import { within } from '../../resilience/deadline.ts'

/** The input of the thread. */
export interface ParseTask {
  readonly files: readonly RuleFile[]
  readonly options: ParseOptions
  readonly recordsPerSlice: number
}

/** Messages of the thread: first the faults or the warnings, then slices; the last is empty. */
export type Parsed =
  | { readonly faults: readonly RuleFault[] }
  | { readonly warnings: readonly RuleFault[] }
  | { readonly slice: readonly RuleRecord[] }

/** A parser that runs in a thread. */
export interface ThreadParser {
  /** Throws an error if the thread fails or times out. */
  parse(files: readonly RuleFile[]): Promise<ParsedRuleFiles>
  /** Aborts the parses in flight and rejects later ones; their callers receive an error. */
  stop(): Promise<void>
}

const PARSE_MS_MAX = 60_000
/** Building one slice takes far less than 5 ms. */
const RECORDS_PER_SLICE = 50
const HEAP_MB_MAX = 128

/** Creates the parser; each `parse` starts a thread. */
export function createThreadParser(options: ParseOptions, msMax = PARSE_MS_MAX): ThreadParser {
  const threads = new Set<Worker>()
  let isStopped = false
  return {
    async parse(files) {
      if (isStopped) throw new Error('the process is stopping')
      const task: ParseTask = { files, options, recordsPerSlice: RECORDS_PER_SLICE }
      const thread = new Worker(new URL('./rule-thread.ts', import.meta.url), {
        workerData: task,
        execArgv: ['--disable-warning=ExperimentalWarning'], // no tracing in the thread
        resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
      })
      threads.add(thread)
      const timeout = () => new Error(`parsing the files took longer than ${msMax} ms`)
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
    const handle = (message: Parsed) => {
      if ('faults' in message) resolve({ faults: message.faults })
      else if ('slice' in message && message.slice.length === 0) {
        resolve({ rules: builder.rules, warnings })
      } else {
        if ('warnings' in message) warnings = message.warnings
        else for (const record of message.slice) builder.add(record)
        requestNext()
      }
    }
    thread.on('message', (message: Parsed) => {
      try {
        handle(message)
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
    thread.on('error', (error) => {
      reject(new Error('the thread that parses the rules failed', { cause: error }))
    })
    thread.on('exit', () => {
      reject(new Error('the thread that parses the rules stopped'))
    })
  })
}
