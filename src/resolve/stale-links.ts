// Stale targets of links with their times, in byte buffers outside the heap: as objects they would
// cost more in garbage collection than the rest of a redirect. Bounded: the oldest entry is evicted
// first. The reader checks a link's own expiry.
import type { Target } from '../links/decide-redirect.ts'
import { createCodeSlots } from './code-slots.ts'
import { createTargetRing } from './target-ring.ts'

/** A target, and when it may be served. */
export interface StaleLink extends Target {
  /** Start of the lookup that returned it. */
  readonly readAtMs: number
  /** Start of the period in which it may be served without a lookup. */
  readonly fromMs: number
  /** End of that period. */
  readonly untilMs: number
}

/** Stale targets by code. */
export interface StaleLinks {
  /**
   * The target that may be served at `nowMs` without a lookup; none with a start in the future:
   * the clock was set back, so its age is unknown.
   */
  getFresh(code: string, nowMs: number): StaleLink | undefined
  /** The target, regardless of its times. */
  get(code: string): StaleLink | undefined
  /** Stores or replaces a target of visible ASCII; one that is too long is not stored. */
  put(code: string, link: StaleLink): void
  delete(code: string): void
}

const INITIAL_SLOTS = 64
const LENGTH_MAX = 0xffff

/** Numbers of each slot; EXPIRES is NaN for a link that never expires. */
const [READ_AT, FROM, UNTIL, EXPIRES, POSITION, NUMBERS] = [0, 1, 2, 3, 4, 5] as const

/** Creates an empty table, which grows up to its bounds: powers of two. */
export function createStaleLinks(bounds: {
  readonly linksMax: number
  readonly targetBytesMax: number
}): StaleLinks {
  const targets = createTargetRing(bounds.targetBytesMax)
  let slots = createCodeSlots(Math.min(INITIAL_SLOTS, bounds.linksMax))
  let numbers = new Float64Array(slots.count * NUMBERS)
  let lengths = new Uint16Array(slots.count)

  const numberAt = (slot: number, field: number) => numbers[slot * NUMBERS + field] ?? 0
  const isPresent = (slot: number) => targets.isPresent(numberAt(slot, POSITION))
  const find = (code: string): number => {
    const slot = slots.select(code) ? slots.find() : -1
    return slot >= 0 && isPresent(slot) ? slot : -1
  }
  const read = (slot: number): StaleLink | undefined => {
    if (slot < 0) return undefined
    const longUrl = targets.read(numberAt(slot, POSITION), lengths[slot] ?? 0)
    return readTimes(numbers, slot * NUMBERS, longUrl)
  }
  const grow = () => {
    const [oldNumbers, oldLengths] = [numbers, lengths]
    numbers = new Float64Array(numbers.length * 2)
    lengths = new Uint16Array(lengths.length * 2)
    slots = slots.doubled((from, to) => {
      numbers.set(oldNumbers.subarray(from * NUMBERS, (from + 1) * NUMBERS), to * NUMBERS)
      lengths[to] = oldLengths[from] ?? 0
    })
  }
  /** A slot for the selected code: a free one, a new one, or the slot of the oldest entry. */
  const slotFor = (code: string): number => {
    const { first, end } = slots.candidates()
    let oldest = first
    for (let slot = first; slot < end; slot++) {
      if (slots.isFree(slot) || !isPresent(slot)) return slot
      if (numberAt(slot, POSITION) < numberAt(oldest, POSITION)) oldest = slot
    }
    if (slots.count >= bounds.linksMax) return oldest
    grow()
    slots.select(code)
    return slotFor(code)
  }
  return {
    getFresh(code, nowMs) {
      const slot = find(code)
      const isFresh = slot >= 0 && numberAt(slot, UNTIL) > nowMs && numberAt(slot, FROM) <= nowMs
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
      const before = isReusable ? numberAt(slot, POSITION) : undefined
      const position = targets.write(link.longUrl, before)
      slots.take(slot)
      lengths[slot] = link.longUrl.length
      writeTimes(numbers, slot * NUMBERS, link)
      numbers[slot * NUMBERS + POSITION] = position
    },
    delete(code) {
      if (slots.select(code)) slots.free(slots.find())
    },
  }
}

/** The link to `longUrl` whose numbers start at `at`. */
function readTimes(numbers: Float64Array, at: number, longUrl: string): StaleLink {
  const expiresAtMs = numbers[at + EXPIRES] ?? Number.NaN
  return {
    longUrl,
    expiresAtMs: Number.isNaN(expiresAtMs) ? null : expiresAtMs,
    readAtMs: numbers[at + READ_AT] ?? 0,
    fromMs: numbers[at + FROM] ?? 0,
    untilMs: numbers[at + UNTIL] ?? 0,
  }
}

function writeTimes(numbers: Float64Array, at: number, link: StaleLink): void {
  numbers[at + READ_AT] = link.readAtMs
  numbers[at + FROM] = link.fromMs
  numbers[at + UNTIL] = link.untilMs
  numbers[at + EXPIRES] = link.expiresAtMs ?? Number.NaN
}
