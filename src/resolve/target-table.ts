// Targets, fresh and stale, and their times, in byte buffers outside the heap: with one object per
// entry, garbage collection would cost more than all other work of a redirect. Evicts the oldest
// targets when the ring is full, and the oldest entry of a code's set of slots (code-slots.ts)
// when all of them are used and the table cannot grow. The caller checks the expiry of links.
import type { Target } from '../links/decide-redirect.ts'
import { type CodeSlots, createCodeSlots } from './code-slots.ts'
import { createTargetRing } from './target-ring.ts'

/** A cached target, and when it may be served. Times are Unix milliseconds. */
export interface CachedTarget extends Target {
  /** Start of the lookup that returned it. */
  readonly lookedUpMs: number
  /** Start of the period in which it may be served without a lookup. */
  readonly fromMs: number
  /** End of that period. */
  readonly untilMs: number
}

/**
 * Targets by code. They stay here when they are no longer fresh, to be served as stale. A caller
 * may set `allowedBy` of a returned target: the table keeps the value if it is set before the next
 * call that returns or stores a target.
 */
export interface TargetTable {
  /**
   * The target, if `nowMs` is within the period in which it may be served without a lookup. A
   * period that starts in the future is invalid: the clock was set back, so the age is unknown.
   */
  getFresh(code: string, nowMs: number): CachedTarget | undefined
  /**
   * The number of reads of this table between the last two reads of the target that was returned
   * last; Infinity if that was its first read since `put`.
   */
  readDistance(): number
  /** The target, regardless of its times. */
  get(code: string): CachedTarget | undefined
  /** Stores or replaces a target of visible ASCII; if it is too long, only deletes the old one. */
  put(code: string, link: CachedTarget): void
  delete(code: string): void
}

const INITIAL_SLOTS = 64
const LENGTH_MAX = 0xffff

/**
 * Numeric fields of each slot, and their count. EXPIRES is NaN for a link that never expires,
 * ALLOWED_BY for a target that no list has allowed. LAST_READ is the
 * number of reads of the table at the last read of the target.
 */
const [LOOKED_UP, FROM, UNTIL, EXPIRES, ALLOWED_BY, POSITION, LAST_READ, FIELDS] = [
  0, 1, 2, 3, 4, 5, 6, 7,
] as const

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
  let [last, lastSlot]: [CachedTarget | undefined, number] = [undefined, 0]
  /** Copies the `allowedBy` of the target that was read last to the slot of that target. */
  const keepAllowedBy = () => {
    if (last?.allowedBy !== undefined) fields[lastSlot * FIELDS + ALLOWED_BY] = last.allowedBy
    last = undefined
  }
  let [reads, readDistance] = [0, Infinity]
  const read = (slot: number): CachedTarget | undefined => {
    if (slot < 0) return undefined
    keepAllowedBy()
    readDistance = ++reads - fieldAt(slot, LAST_READ)
    fields[slot * FIELDS + LAST_READ] = reads
    const longUrl = targets.read(fieldAt(slot, POSITION), lengths[slot] ?? 0)
    lastSlot = slot
    return (last = withFields(longUrl, fields, slot * FIELDS))
  }
  /** A free slot or, if there is none and the table cannot grow, that of the set's oldest entry. */
  const slotFor = (code: string): number => {
    const { first, end } = slots.candidates()
    for (let slot = first; slot < end; slot++)
      if (slots.isFree(slot) || !isPresent(slot)) return slot
    if (slots.count >= bounds.linksMax) return oldestOf(fields, first, end)
    ;({ slots, fields, lengths } = doubled({ slots, fields, lengths }))
    slots.select(code)
    return slotFor(code)
  }
  return {
    getFresh(code, nowMs) {
      const slot = find(code)
      const isFresh = slot >= 0 && fieldAt(slot, UNTIL) > nowMs && fieldAt(slot, FROM) <= nowMs
      return isFresh ? read(slot) : undefined
    },
    readDistance: () => readDistance,
    get: (code) => read(find(code)),
    put(code, link) {
      keepAllowedBy()
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
      writeFields(fields, slot * FIELDS, link)
      fields[slot * FIELDS + POSITION] = position
    },
    delete(code) {
      if (slots.select(code)) slots.free(slots.find())
    },
  }
}

/** The slot with the oldest target, from `first` up to, but not including, `end`. */
function oldestOf(fields: Float64Array, first: number, end: number): number {
  const positionAt = (slot: number) => fields[slot * FIELDS + POSITION] ?? 0
  let oldest = first
  for (let slot = first; slot < end; slot++)
    if (positionAt(slot) < positionAt(oldest)) oldest = slot
  return oldest
}

interface Entries {
  readonly slots: CodeSlots
  readonly fields: Float64Array<ArrayBuffer>
  readonly lengths: Uint16Array<ArrayBuffer>
}

/** Moves the entries to twice as many slots. */
function doubled(old: Entries): Entries {
  const fields = new Float64Array(old.fields.length * 2)
  const lengths = new Uint16Array(old.lengths.length * 2)
  const slots = old.slots.doubled((from, to) => {
    fields.set(old.fields.subarray(from * FIELDS, (from + 1) * FIELDS), to * FIELDS)
    lengths[to] = old.lengths[from] ?? 0
  })
  old.fields.buffer.transfer(0) // frees it immediately
  return { slots, fields, lengths }
}

/** The target with this URL, and with the fields that start at index `offset`. */
function withFields(longUrl: string, fields: Float64Array, offset: number): CachedTarget {
  const expiresAtMs = fields[offset + EXPIRES] ?? Number.NaN
  const allowedBy = fields[offset + ALLOWED_BY] ?? Number.NaN
  return {
    longUrl,
    expiresAtMs: Number.isNaN(expiresAtMs) ? null : expiresAtMs,
    lookedUpMs: fields[offset + LOOKED_UP] ?? 0,
    fromMs: fields[offset + FROM] ?? 0,
    untilMs: fields[offset + UNTIL] ?? 0,
    // Present even if undefined: setting it later does not change the object's hidden class.
    allowedBy: Number.isNaN(allowedBy) ? undefined : allowedBy,
  }
}

function writeFields(fields: Float64Array, offset: number, link: CachedTarget): void {
  fields[offset + LOOKED_UP] = link.lookedUpMs
  fields[offset + FROM] = link.fromMs
  fields[offset + UNTIL] = link.untilMs
  fields[offset + EXPIRES] = link.expiresAtMs ?? Number.NaN
  fields[offset + ALLOWED_BY] = link.allowedBy ?? Number.NaN
  fields[offset + LAST_READ] = -Infinity
}
