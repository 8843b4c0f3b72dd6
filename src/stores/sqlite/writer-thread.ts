// The thread that writes: runs each group it is sent in one transaction and answers once that is on
// the disk. A group that fails is rolled back whole.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { durablePragmas } from './durable-pragmas.ts'
import { type Operation, operations } from './operations.ts'
import type { Answer, Row, Write } from './writer.ts'

const port = parentPort
if (port === null) throw new Error('this file is a thread of stores/sqlite/writer.ts')

const db = new DatabaseSync((workerData as { path: string }).path)
db.exec(durablePragmas)
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
const rollback = db.prepare('ROLLBACK')

const prepared = new Map<string, { write?: StatementSync; read?: StatementSync }>()
for (const [name, { write, read }] of Object.entries<Operation>(operations)) {
  prepared.set(name, {
    ...(write !== undefined && { write: prepare(write) }),
    ...(read !== undefined && { read: prepare(read) }),
  })
}

function prepare(sql: string): StatementSync {
  const statement = db.prepare(sql)
  statement.setAllowUnknownNamedParameters(true)
  return statement
}

function run({ name, parameters }: Write): Row | undefined {
  const operation = prepared.get(name)
  const values = parameters as Record<string, SQLInputValue>
  operation?.write?.run(values)
  return operation?.read?.get(values)
}

function runGroup(group: readonly Write[]): Answer {
  const begunMs = performance.now()
  try {
    begin.run()
    const rows = group.map(run)
    commit.run()
    return { rows, tookMs: performance.now() - begunMs }
  } catch (error) {
    if (db.isTransaction) rollback.run()
    return { failure: (error as Error).message }
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
