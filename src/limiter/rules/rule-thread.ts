// The worker thread that parses rule files: sends the faults, or the rules as records, one slice
// for each message of parse-in-thread.ts.
import { parentPort, workerData } from 'node:worker_threads'
import { type RuleRecord, recordsOf } from '../../limits/rule-records.ts'
import { countDescriptors } from '../../limits/rule-tree.ts'
import { parseRules } from '../../limits/parse-rules.ts'
import type { ParseTask, ThreadMessage } from './parse-in-thread.ts'

const port = parentPort
if (port === null) throw new Error('Cannot parse rules: not started by parse-in-thread.ts')

const { files, options, recordsPerSlice } = workerData as ParseTask
const parsed = parseRules(files, options)
const records = 'faults' in parsed ? undefined : recordsOf(parsed.rules)

function nextSlice(): RuleRecord[] {
  const slice: RuleRecord[] = []
  while (slice.length < recordsPerSlice) {
    const next = records?.next()
    if (next === undefined || next.done === true) break
    slice.push(next.value)
  }
  return slice
}

port.on('message', () => {
  const slice = nextSlice()
  port.postMessage({ slice } satisfies ThreadMessage)
})
port.postMessage(
  ('faults' in parsed
    ? { faults: parsed.faults }
    : {
        warnings: parsed.warnings,
        descriptors: countDescriptors(parsed.rules),
      }) satisfies ThreadMessage,
)
