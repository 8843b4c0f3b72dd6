// The table of blocked hosts and prefixes: a hash table with open addressing whose records are the
// entries themselves, in one byte buffer outside the heap. Records are compared completely, so a
// collision of hashes never blocks another target.
import { createRecordReader, type RecordReader } from './blocked-records.ts'

/** A table, whose buffers a worker thread can transfer. */
export interface BlockedTable {
  /** The records, and unused bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The position of each slot's record. The number of slots is a power of two. */
  readonly slots: Uint32Array<ArrayBuffer>
  /** A filter: bits of the hash of each slot's record, compared before the record; 0: free slot. */
  readonly tags: Uint8Array<ArrayBuffer>
  /** The initial value of each hash: random, so that a list cannot contain chosen collisions. */
  readonly seed: number
}

/** Searches records, from the slot of a hash. A search that finds none stops at a free slot. */
export interface TableProbe {
  /** Selects the first slot of a hash. */
  start(hash: number): void
  /** The record of the host from `start` to `end` of `text`, or -1. */
  findHost(text: string, start: number, end: number): number
  /** The record of the prefix `path.slice(0, length)` on the host with record `host`, or -1. */
  findPrefix(host: number, path: string, length: number): number
  /** Skips the slots that are not free. */
  skip(): void
  /** Stores a record in the slot, which must be free. */
  occupy(record: number): void
}

/** The hash after one more character. */
export function nextHash(hash: number, character: number): number {
  return Math.imul(hash ^ character, 0x9e3779b1)
}

/** The hash of a host, from its end: the hashes of its parent domains are intermediate results. */
export function hashOfHost(host: string, seed: number): number {
  let hash = seed
  for (let i = host.length - 1; i >= 0; i--) hash = nextHash(hash, host.charCodeAt(i))
  return hash
}

/** The hash of a prefix: that of its host, continued with the characters of the path. */
export function hashOfPrefix(host: string, path: string, seed: number): number {
  let hash = hashOfHost(host, seed)
  for (let i = 0; i < path.length; i++) hash = nextHash(hash, path.charCodeAt(i))
  return hash
}

/** The hash of a record. */
export function hashOfRecord(records: RecordReader, record: number, seed: number): number {
  const length = records.lengthOf(record)
  let hash = seed
  if (records.isPrefix(record)) {
    hash = hashOfRecord(records, records.hostOf(record), seed)
    for (let i = 0; i < length; i++) hash = nextHash(hash, records.characterAt(record, i))
  } else {
    for (let i = length - 1; i >= 0; i--) hash = nextHash(hash, records.characterAt(record, i))
  }
  return hash
}

/** Creates the probe of a table. */
export function createTableProbe({ bytes, slots, tags }: BlockedTable): TableProbe {
  const records = createRecordReader(bytes)
  const mask = slots.length - 1
  let slot = 0
  let tag = 0
  return {
    start(hash) {
      let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
      mixed ^= mixed >>> 16
      slot = mixed & mask
      tag = mixed >>> 24 || 1
    },
    findHost(text, start, end) {
      for (; tags[slot] !== 0; slot = (slot + 1) & mask) {
        if (tags[slot] !== tag) continue
        const record = slots[slot] ?? 0
        if (records.lengthOf(record) !== end - start || records.isPrefix(record)) continue
        if (records.isAt(record, text, start)) return record
      }
      return -1
    },
    findPrefix(host, path, length) {
      for (; tags[slot] !== 0; slot = (slot + 1) & mask) {
        if (tags[slot] !== tag) continue
        const record = slots[slot] ?? 0
        if (records.lengthOf(record) !== length || !records.isPrefix(record)) continue
        if (records.hostOf(record) === host && records.isAt(record, path, 0)) return record
      }
      return -1
    },
    skip() {
      while (tags[slot] !== 0) slot = (slot + 1) & mask
    },
    occupy(record) {
      slots[slot] = record
      tags[slot] = tag
    },
  }
}
