// The worker thread that builds a large table of blocked targets: reads the files one after the
// other, and sends the table without copying it.
import { readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { type BlockedFile, buildBlockedTable } from './build-blocked-table.ts'
import type { BuildTask } from './load-blocked-targets.ts'

const port = parentPort
if (port === null) throw new Error('Cannot build the table: not started by load-blocked-targets.ts')

const { paths, bytes, seed } = workerData as BuildTask

function* readFiles(): Generator<BlockedFile> {
  for (const path of paths) yield { path, content: readFileSync(path) }
}

const building = buildBlockedTable(readFiles(), { bytes, seed })
let step = building.next()
while (step.done !== true) step = building.next()
const { table } = step.value
port.postMessage(step.value, [table.bytes.buffer, table.slots.buffer, table.tags.buffer])
