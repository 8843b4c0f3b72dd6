// A process with its own database, for sqlite.test.ts: it prints acknowledged codes until it is
// killed or its disk is full.
// Arguments: DATA_DIR and `hold` | `insert` | `fill`.
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { StoreError } from '../../../src/resilience/store-error.ts'
import { openDatabase } from '../../../src/stores/sqlite/database.ts'
import { createSqliteLinkStore } from '../../../src/stores/sqlite/link-store.ts'
import { sampleLink } from '../../contract/sample-link.ts'

const GROUP = 10
const GROUPS_MAX = 10_000
const [dataDir = '', task] = process.argv.slice(2)

// At the file-size limit that the shell sets, the write must fail, not the process.
process.on('SIGXFSZ', () => undefined)
const print = (line: string) => process.stdout.write(`${line}\n`)
const db = await openDatabase(dataDir, createMetrics())
const links = createSqliteLinkStore(db)
print('open')

if (task === 'hold') setInterval(() => undefined, 60_000)
if (task === 'insert') await Promise.all(Array.from({ length: 8 }, insertUntilKilled))
if (task === 'fill') await fill()

/** Inserts links one after another, and prints each code once it is acknowledged. */
async function insertUntilKilled(_: unknown, stream: number): Promise<void> {
  for (let i = 0; i < GROUPS_MAX; i++) {
    const link = sampleLink({ code: `${String(stream)}-${String(i)}` })
    if ((await links.insertIfAbsent(link)) === link.writerId) print(link.code)
  }
}

/** Inserts links in groups of one transaction each until one fails; then reads and retries. */
async function fill(): Promise<void> {
  for (let group = 0; group < GROUPS_MAX; group++) {
    const codes = Array.from({ length: GROUP }, (_, i) => `${String(group)}-${String(i)}`)
    const results = await Promise.all(codes.map(insertLong))
    if (results.every((result) => result === 'stored')) {
      codes.forEach(print)
      continue
    }
    print(`failed ${String(group)} ${[...new Set(results)].join()}`)
    const first = await links.find('0-0')
    print(`first ${first === undefined ? 'lost' : 'present'}`)
    print(`retry ${await insertLong('retry')}`)
    await db.close()
    return
  }
}

async function insertLong(code: string): Promise<string> {
  const longUrl = `https://example.com/${'x'.repeat(2000)}`
  try {
    await links.insertIfAbsent(sampleLink({ code, longUrl }))
    return 'stored'
  } catch (error) {
    return error instanceof StoreError ? error.outcome : String(error)
  }
}
