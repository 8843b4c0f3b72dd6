// Parses rule files in a thread of its own and builds the rules here a slice at a time, so that
// decisions go on meanwhile. Bounded in time and memory; the thread lives for one set of files.
import { Worker } from 'node:worker_threads'
import type { RuleFault } from '../../limits/rule.ts'
import { RuleBuilder, type RuleRecord } from '../../limits/rule-records.ts'
import type { ParsedRuleFiles, ParseOptions, RuleFile } from '../../limits/rules.ts'
import { within } from '../../resilience/deadline.ts'

/** What the thread is started with. */
export interface ParseTask {
  readonly files: readonly RuleFile[]
  readonly options: ParseOptions
  readonly recordsPerSlice: number
}

/** What the thread sends: first the faults or the remarks, then slices; the last one is empty. */
export type Parsed =
  | { readonly faults: readonly RuleFault[] }
  | { readonly remarks: readonly RuleFault[] }
  | { readonly slice: readonly RuleRecord[] }

/** Parses in a thread. */
export interface ThreadParser {
  /** Throws an Error if the thread failed or took too long. */
  parse(files: readonly RuleFile[]): Promise<ParsedRuleFiles>
  /** Aborts what is in flight and rejects what comes later; callers get the Error. */
  stop(): Promise<void>
}

const PARSE_MS_MAX = 60_000
/** Far below 5 ms of work here. */
const RECORDS_PER_SLICE = 50
const HEAP_MB_MAX = 128

/** Creates the parser; starts no thread yet. */
export function createThreadParser(options: ParseOptions, msMax = PARSE_MS_MAX): ThreadParser {
  const threads = new Set<Worker>()
  let isStopped = false
  return {
    async parse(files) {
      if (isStopped) throw new Error('the process is stopping')
      const task: ParseTask = { files, options, recordsPerSlice: RECORDS_PER_SLICE }
      const thread = new Worker(new URL('./rule-thread.ts', import.meta.url), {
        workerData: task,
        execArgv: ['--disable-warning=ExperimentalWarning'], // no tracing there
        resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
      })
      threads.add(thread)
      const late = () => new Error(`parsing the files took longer than ${msMax} ms`)
      try {
        return await within(msMax, collect(thread), late)
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
  let remarks: readonly RuleFault[] = []
  // Not at once: the event loop turns between two slices, however fast the thread is.
  const askNext = () => {
    setImmediate(() => {
      thread.postMessage('next')
    })
  }
  return new Promise((resolve, reject) => {
    const take = (message: Parsed) => {
      if ('faults' in message) resolve({ faults: message.faults })
      else if ('slice' in message && message.slice.length === 0) {
        resolve({ rules: builder.rules, remarks })
      } else {
        if ('remarks' in message) remarks = message.remarks
        else for (const record of message.slice) builder.add(record)
        askNext()
      }
    }
    thread.on('message', (message: Parsed) => {
      try {
        take(message)
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
    thread.on('error', (error) => {
      reject(new Error('the thread that parses the rules failed', { cause: error }))
    })
    thread.on('exit', () => {
      reject(new Error('the thread that parses the rules ended'))
    })
  })
}
