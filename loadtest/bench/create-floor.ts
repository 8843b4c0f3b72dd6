// The floor for creates: only node:sqlite, with the service's own pragmas, table and insert; no
// HTTP, threads or generated codes. It inserts prepared rows in durable transactions of a given
// size.
import { randomBytes, randomUUID } from 'node:crypto'
import { rmSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { durablePragmas } from '../../src/stores/sqlite/durable-pragmas.ts'
import { operations } from '../../src/stores/sqlite/operations.ts'
import { withNumberedParameters, writeOf } from '../../src/stores/sqlite/parameters.ts'
import { migrations } from '../../src/stores/sqlite/schema.ts'

/** The task of the floor: creates, in transactions of `group` creates on average. */
export interface FloorTask {
  readonly creates: number
  readonly group: number
}

/** The time that the creates took. */
export interface FloorSpan {
  readonly elapsedMs: number
  readonly cpuUs: number
}

const folder = mkdtempSync(join(tmpdir(), 'curtail-floor-'))
const db = new DatabaseSync(join(folder, 'floor.db'))
db.exec(durablePragmas)
for (const sql of migrations) db.exec(sql)
const startTransaction = db.prepare('BEGIN IMMEDIATE')
const insert = db.prepare(
  withNumberedParameters(operations.insertLink, operations.insertLink.write).sql,
)
const commit = db.prepare('COMMIT')

let created = 0

function buildRow() {
  const id = String(++created).padStart(12, '0')
  const [, ...values] = writeOf('insertLink', {
    code: randomBytes(5).toString('base64url'), // 7 random characters, like generated codes
    longUrl: `https://example.com/a/path/of/usual/length?id=${id}`,
    createdAtMs: Date.now(),
    expiresAtMs: null,
    creatorId: null,
    writerId: randomUUID(),
    disabledAtMs: null,
    deletedAtMs: null,
  })
  return values
}

function run({ creates, group }: FloorTask): FloorSpan {
  const rows = Array.from({ length: creates }, buildRow)
  const before = process.cpuUsage()
  const startMs = performance.now()
  let done = 0
  for (let groups = 1; done < creates; groups++) {
    startTransaction.run()
    // The mean group size is `group`, which can be a fraction.
    for (const end = Math.min(creates, Math.round(groups * group)); done < end; done++) {
      const row = rows[done]
      if (row !== undefined) insert.run(...row)
    }
    commit.run()
  }
  const { user, system } = process.cpuUsage(before)
  return { elapsedMs: performance.now() - startMs, cpuUs: user + system }
}

process.on('message', (task: FloorTask) => {
  process.send?.(run(task))
})
process.on('disconnect', () => {
  db.close()
  rmSync(folder, { recursive: true })
  process.exit()
})
