// Builds a table of blocked targets, entry by entry. Its arrays grow by doubling.
import type { BlockedEntry } from './blocked-entry.ts'
import { BLOCKED, createRecordReader, HAS_PREFIXES, recordOf } from './blocked-records.ts'
import {
  type BlockedTable,
  createTableProbe,
  hashOfHost,
  hashOfPrefix,
  hashOfRecord,
} from './blocked-table.ts'

/** A table that is being built. */
export interface BlockedTableBuilder {
  /** Adds an entry; does nothing if the table has it. */
  add(entry: BlockedEntry): void
  /** The number of different entries. */
  readonly entries: () => number
  /** The table; the builder must not be used afterwards. */
  finish(): BlockedTable
}

/** Above this load, searches in the table become slower. */
const LOAD_MAX = 0.75
const SLOTS_MIN = 64
const BYTES_MIN = 4096

/** Creates an empty table with space for these numbers of entries and of bytes of records. */
export function createTableBuilder(given: {
  readonly entries: number
  readonly bytes?: number
  readonly seed: number
}): BlockedTableBuilder {
  const { bytes = 0, seed } = given
  const capacity = 2 ** Math.ceil(Math.log2(Math.max(SLOTS_MIN, given.entries / LOAD_MAX)))
  let table: BlockedTable = {
    bytes: new Uint8Array(Math.max(BYTES_MIN, bytes)),
    slots: new Uint32Array(capacity),
    tags: new Uint8Array(capacity),
    seed,
  }
  let probe = createTableProbe(table)
  let used = 0
  let records = 0
  let entries = 0
  /** Appends a record, and stores its position in the free slot where the search stopped. */
  const append = (record: Uint8Array): number => {
    const position = used
    probe.occupy(position)
    used += record.length
    records++
    const before = table
    if (used > table.bytes.length) table = { ...table, bytes: extended(table.bytes, used) }
    table.bytes.set(record, position)
    if (records > table.slots.length * LOAD_MAX) table = doubled(table)
    if (table !== before) probe = createTableProbe(table)
    return position
  }
  const addHost = (host: string, flag: number): number => {
    probe.start(hashOfHost(host, seed))
    const found = probe.findHost(host, 0, host.length)
    const record = found >= 0 ? found : append(recordOf(host))
    const flags = table.bytes[record] ?? 0
    if (flag === BLOCKED && (flags & BLOCKED) === 0) entries++
    table.bytes[record] = flags | flag
    return record
  }
  return {
    add({ host, path }) {
      if (path === undefined) {
        addHost(host, BLOCKED)
        return
      }
      const hostRecord = addHost(host, HAS_PREFIXES)
      probe.start(hashOfPrefix(host, path, seed))
      if (probe.findPrefix(hostRecord, path, path.length) >= 0) return
      append(recordOf(path, hostRecord))
      entries++
    },
    entries: () => entries,
    finish: () => table, // without a copy: memory that was reserved but not used is not resident
  }
}

/** A copy with space for at least `length` bytes. */
function extended(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(Math.max(2 * bytes.length, length))
  larger.set(bytes)
  bytes.buffer.transfer(0) // frees it immediately
  return larger
}

/** The table with twice as many slots. */
function doubled({ bytes, slots, tags, seed }: BlockedTable): BlockedTable {
  const capacity = 2 * slots.length
  const slotsAndTags = { slots: new Uint32Array(capacity), tags: new Uint8Array(capacity) }
  const table = { bytes, seed, ...slotsAndTags }
  const records = createRecordReader(bytes)
  const probe = createTableProbe(table)
  for (const [slot, record] of slots.entries()) {
    if (tags[slot] === 0) continue
    probe.start(hashOfRecord(records, record, seed))
    probe.skip()
    probe.occupy(record)
  }
  slots.buffer.transfer(0) // frees it immediately
  return table
}
