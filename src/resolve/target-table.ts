// Targets, fresh and stale, and their times, in byte buffers outside the heap: with one object per
// entry, garbage collection would cost more than all other work of a redirect. Bounded: evicts the
// oldest targets, or the oldest entry of a full set. The caller checks whether a link has expired.
import type { Target } from '../links/decide-redirect.ts'
import { createCodeSlots } from './code-slots.ts'
import { createTargetRing } from './target-ring.ts'

/** A cached target, and when it may be served. Times are Unix milliseconds. */
export interface CachedTarget extends Target {
  /** Start of the lookup that returned it. */
  readonly readAtMs: number
  /** Start of the period in which it may be served without a lookup. */
  readonly fromMs: number
  /** End of that period. */
  readonly untilMs: number
}

/** Targets by code. They stay here when they are no longer fresh, to be served as stale. */
export interface TargetTable {
  /**
   * The target, if `nowMs` is within the period in which it may be served without a lookup. A
   * period that starts in the future is invalid: the clock was set back, so the age is unknown.
   */
  getFresh(code: string, nowMs: number): CachedTarget | undefined
  /** The target, regardless of its times. */
  get(code: string): CachedTarget | undefined
  /** Stores or replaces a target of visible ASCII; one that is too long is not stored. */
  put(code: string, link: CachedTarget): void
  delete(code: string): void
}

const INITIAL_SLOTS = 64
const LENGTH_MAX = 0xffff

/** Numeric fields of each slot, and their count; EXPIRES is NaN for a link that never expires. */
const [READ_AT, FROM, UNTIL, EXPIRES, POSITION, FIELDS] = [0, 1, 2, 3, 4, 5] as const

/** Creates an empty table, which grows up to its bounds; both must be powers of two. */
export function createTargetTable(bounds: {
  readonly linksMax: number
  readonly targetBytesMax: number
}): TargetTable {
  const targets = createTargetRing(bounds.targetBytesMax)
  let slots = createCodeSlots(Math.min(INITIAL_SLOTS, bounds.linksMax))
  let fields = new Float64Array(slots.count * FIELDS)
  let lengths = new Uint16Array(slots.count)

  const fieldAt = (slot: number, field: number) => fields[slot * FIELDS + field] ?? 0
  const isPresent = (slot: number) => targets.isPresent(fieldAt(slot, POSITION))
  const find = (code: string): number => {
    const slot = slots.select(code) ? slots.find() : -1
    return slot >= 0 && isPresent(slot) ? slot : -1
  }
  const read = (slot: number): CachedTarget | undefined => {
    if (slot < 0) return undefined
    const longUrl = targets.read(fieldAt(slot, POSITION), lengths[slot] ?? 0)
    return withTimes(longUrl, fields, slot * FIELDS)
  }
  const grow = () => {
    const [oldFields, oldLengths] = [fields, lengths]
    fields = new Float64Array(fields.length * 2)
    lengths = new Uint16Array(lengths.length * 2)
    slots = slots.doubled((from, to) => {
      fields.set(oldFields.subarray(from * FIELDS, (from + 1) * FIELDS), to * FIELDS)
      lengths[to] = oldLengths[from] ?? 0
    })
    oldFields.buffer.transfer(0) // frees it immediately
  }
  /** Finds a free slot, or else grows the table or, at its bound, reuses the oldest of the set. */
  const slotFor = (code: string): number => {
    const { first, end } = slots.candidates()
    let oldest = first
    for (let slot = first; slot < end; slot++) {
      if (slots.isFree(slot) || !isPresent(slot)) return slot
      if (fieldAt(slot, POSITION) < fieldAt(oldest, POSITION)) oldest = slot
    }
    if (slots.count >= bounds.linksMax) return oldest
    grow()
    slots.select(code)
    return slotFor(code)
  }
  return {
    getFresh(code, nowMs) {
      const slot = find(code)
      const isFresh = slot >= 0 && fieldAt(slot, UNTIL) > nowMs && fieldAt(slot, FROM) <= nowMs
      return isFresh ? read(slot) : undefined
    },
    get: (code) => read(find(code)),
    put(code, link) {
      if (!slots.select(code)) return
      const existing = slots.find()
      if (link.longUrl.length > Math.min(LENGTH_MAX, bounds.targetBytesMax)) {
        slots.free(existing)
        return
      }
      const slot = existing >= 0 ? existing : slotFor(code)
      const isReusable = existing >= 0 && lengths[slot] === link.longUrl.length
      const position = targets.write(link.longUrl, isReusable ? fieldAt(slot, POSITION) : undefined)
      slots.take(slot)
      lengths[slot] = link.longUrl.length
      writeTimes(fields, slot * FIELDS, link)
      fields[slot * FIELDS + POSITION] = position
    },
    delete(code) {
      if (slots.select(code)) slots.free(slots.find())
    },
  }
}

/** `longUrl` with the times that `fields` contains from index `offset`. */
function withTimes(longUrl: string, fields: Float64Array, offset: number): CachedTarget {
  const expiresAtMs = fields[offset + EXPIRES] ?? Number.NaN
  return {
    longUrl,
    expiresAtMs: Number.isNaN(expiresAtMs) ? null : expiresAtMs,
    readAtMs: fields[offset + READ_AT] ?? 0,
    fromMs: fields[offset + FROM] ?? 0,
    untilMs: fields[offset + UNTIL] ?? 0,
    allowedBy: undefined, // so that setting it later does not change the layout of the object
  }
}

function writeTimes(fields: Float64Array, offset: number, link: CachedTarget): void {
  fields[offset + READ_AT] = link.readAtMs
  fields[offset + FROM] = link.fromMs
  fields[offset + UNTIL] = link.untilMs
  fields[offset + EXPIRES] = link.expiresAtMs ?? Number.NaN
}
