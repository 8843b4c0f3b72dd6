// The thread that writes: runs each group it is sent in one transaction and answers once that is on
// the disk. A group that fails is rolled back whole.
import assert from 'node:assert/strict'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { FailedOutcome } from '../../process/store-error.ts'
import { durablePragmas } from './durable-pragmas.ts'
import { type Operation, operations } from './operations.ts'
import { numbered, type Write } from './parameters.ts'
import type { Answer, Row } from './writer.ts'

const port = parentPort
if (port === null) throw new Error('this file is a thread of stores/sqlite/writer.ts')

const db = new DatabaseSync((workerData as { path: string }).path)
db.exec(durablePragmas)
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
const rollback = db.prepare('ROLLBACK')

interface Prepared {
  readonly write: Bound | undefined
  readonly read: Bound | undefined
  readonly readWhen: Operation['readWhen']
}

/** A statement and how many of the values it takes, from the first on. */
interface Bound {
  readonly statement: StatementSync
  readonly values: number
}

const prepared = new Map<string, Prepared>()
for (const [name, operation] of Object.entries<Operation>(operations)) {
  const bind = (named: string | undefined): Bound | undefined => {
    if (named === undefined) return undefined
    const { sql, values } = numbered(operation, named)
    return { statement: db.prepare(sql), values }
  }
  const { write, read, readWhen } = operation
  prepared.set(name, { write: bind(write), read: bind(read), readWhen })
}

function run([name, ...values]: Write): Row | undefined {
  const { write, read, readWhen } = prepared.get(name) ?? unknown(name)
  const changed = write?.statement.run(...values.slice(0, write.values)).changes
  if (readWhen === 'refused' && changed !== 0) return undefined
  const row = read?.statement.get(...values.slice(0, read.values))
  // "No row" would mean that the write was done.
  assert(readWhen !== 'refused' || row !== undefined, `${name} changed nothing and found nothing`)
  return row
}

function unknown(name: string): never {
  throw new Error(`there is no operation ${name}`)
}

function runGroup(group: readonly Write[]): Answer {
  const begunMs = performance.now()
  let outcome: FailedOutcome = 'not-done'
  try {
    begin.run()
    const rows = group.map(run)
    outcome = 'unknown' // a commit that fails at its sync may be found done after a restart
    commit.run()
    return { rows, tookMs: performance.now() - begunMs }
  } catch (error) {
    if (db.isTransaction) rollback.run()
    return { failure: (error as Error).message, outcome }
  }
}

port.on('message', (message: readonly Write[] | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
  } else {
    port.postMessage(runGroup(message))
  }
})
port.postMessage('ready')
