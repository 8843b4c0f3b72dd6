// The writer thread: runs each group in one transaction and replies once it is durable on disk. A
// group that fails is rolled back as a whole.
import assert from 'node:assert/strict'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { releaseStartMemory } from '../../process/release-start-memory.ts'
import { durablePragmas } from './durable-pragmas.ts'
import { type Operation, operations } from './operations.ts'
import { withNumberedParameters, type Write } from './parameters.ts'
import { type WriteResult, runGroup, type Transactions } from './run-group.ts'

const port = parentPort
if (port === null) throw new Error('this file is a thread of stores/sqlite/writer.ts')

const db = new DatabaseSync((workerData as { path: string }).path)
db.exec(durablePragmas)
const start = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
const rollback = db.prepare('ROLLBACK')

interface Prepared {
  readonly write: Bound | undefined
  readonly read: Bound | undefined
  readonly readWhen: Operation['readWhen']
}

/** A statement and the number of leading values that it takes. */
interface Bound {
  readonly statement: StatementSync
  readonly values: number
}

const prepared = new Map<string, Prepared>()
for (const [name, operation] of Object.entries<Operation>(operations)) {
  const bind = (namedSql: string | undefined): Bound | undefined => {
    if (namedSql === undefined) return undefined
    const { sql, values } = withNumberedParameters(operation, namedSql)
    return { statement: db.prepare(sql), values }
  }
  const { write, read, readWhen } = operation
  prepared.set(name, { write: bind(write), read: bind(read), readWhen })
}

function run([name, ...values]: Write): WriteResult {
  const { write, read, readWhen } = prepared.get(name) ?? unknownOperation(name)
  const changed = Number(write?.statement.run(...values.slice(0, write.values)).changes ?? 0)
  if (readWhen === 'unchanged' && changed > 0) return { row: undefined, changed }
  const row = read?.statement.get(...values.slice(0, read.values))
  // "No row" would mean that the write was done.
  assert(readWhen !== 'unchanged' || row !== undefined, `${name} changed nothing and found nothing`)
  return { row, changed }
}

function unknownOperation(name: string): never {
  throw new Error(`unknown operation ${name}`)
}

const transactions: Transactions = {
  start: () => start.run(),
  commit: () => commit.run(),
  rollback: () => rollback.run(),
  isOpen: () => db.isTransaction,
  run,
}

port.on('message', (message: readonly Write[] | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
  } else {
    port.postMessage(runGroup(transactions, message))
  }
})
releaseStartMemory() // of this thread, which has its own heap
port.postMessage('ready')
