// Stale targets of links with their times, in byte buffers outside the heap: as objects they would
// cost more in garbage collection than the rest of a redirect. Bounded: the oldest entry is evicted
// first. The reader checks a link's own expiry.
import type { Target } from '../links/decide-redirect.ts'
import { createCodePlaces } from './code-places.ts'
import { createTargetRing } from './target-ring.ts'

/** A target, and when it may be served. */
export interface StaleLink extends Target {
  /** Start of the look-up that returned it. */
  readonly seenMs: number
  /** It may be served without a look-up from here */
  readonly fromMs: number
  /** until here. */
  readonly untilMs: number
}

/** Stale targets by code. */
export interface StaleLinks {
  /**
   * The target that may be served at `nowMs` without a look-up; none with a start in the future:
   * the clock was set back, so its age is unknown.
   */
  getFresh(code: string, nowMs: number): StaleLink | undefined
  /** The target, whatever its times. */
  get(code: string): StaleLink | undefined
  /** Stores or replaces a target of visible ASCII; one that is too long is not stored. */
  put(code: string, seen: StaleLink): void
  delete(code: string): void
}

const PLACES_AT_FIRST = 64
const LENGTH_MAX = 0xffff

/** Numbers of each place; a link without an end has NaN for it. */
const [SEEN, FROM, UNTIL, EXPIRES, POSITION, NUMBERS] = [0, 1, 2, 3, 4, 5] as const

/** Creates an empty table, which grows up to its bounds: powers of two. */
export function createStaleLinks(bounds: {
  readonly linksMax: number
  readonly targetBytesMax: number
}): StaleLinks {
  const targets = createTargetRing(bounds.targetBytesMax)
  let places = createCodePlaces(Math.min(PLACES_AT_FIRST, bounds.linksMax))
  let numbers = new Float64Array(places.count * NUMBERS)
  let lengths = new Uint16Array(places.count)

  const numberAt = (place: number, what: number) => numbers[place * NUMBERS + what] ?? 0
  const isThere = (place: number) => targets.isThere(numberAt(place, POSITION))
  const find = (code: string): number => {
    const place = places.choose(code) ? places.find() : -1
    return place >= 0 && isThere(place) ? place : -1
  }
  const read = (place: number): StaleLink | undefined => {
    if (place < 0) return undefined
    const longUrl = targets.read(numberAt(place, POSITION), lengths[place] ?? 0)
    return readTimes(numbers, place * NUMBERS, longUrl)
  }
  const grow = () => {
    const [oldNumbers, oldLengths] = [numbers, lengths]
    numbers = new Float64Array(numbers.length * 2)
    lengths = new Uint16Array(lengths.length * 2)
    places = places.grown((from, to) => {
      numbers.set(oldNumbers.subarray(from * NUMBERS, (from + 1) * NUMBERS), to * NUMBERS)
      lengths[to] = oldLengths[from] ?? 0
    })
  }
  /** A place for the chosen code: a free one, a new one, or the one of the oldest entry. */
  const makeRoom = (code: string): number => {
    const { first, end } = places.candidates()
    let oldest = first
    for (let place = first; place < end; place++) {
      if (places.isFree(place) || !isThere(place)) return place
      if (numberAt(place, POSITION) < numberAt(oldest, POSITION)) oldest = place
    }
    if (places.count >= bounds.linksMax) return oldest
    grow()
    places.choose(code)
    return makeRoom(code)
  }
  return {
    getFresh(code, nowMs) {
      const place = find(code)
      const isFresh = place >= 0 && numberAt(place, UNTIL) > nowMs && numberAt(place, FROM) <= nowMs
      return isFresh ? read(place) : undefined
    },
    get: (code) => read(find(code)),
    put(code, seen) {
      if (!places.choose(code)) return
      const known = places.find()
      if (seen.longUrl.length > Math.min(LENGTH_MAX, bounds.targetBytesMax)) {
        if (known >= 0) places.free(known)
        return
      }
      const place = known >= 0 ? known : makeRoom(code)
      const isAsLong = known >= 0 && lengths[place] === seen.longUrl.length
      const position = targets.write(seen.longUrl, isAsLong ? numberAt(place, POSITION) : undefined)
      places.take(place)
      lengths[place] = seen.longUrl.length
      writeTimes(numbers, place * NUMBERS, seen)
      numbers[place * NUMBERS + POSITION] = position
    },
    delete(code) {
      const place = places.choose(code) ? places.find() : -1
      if (place >= 0) places.free(place)
    },
  }
}

/** The link to `longUrl` whose numbers begin at `at`. */
function readTimes(numbers: Float64Array, at: number, longUrl: string): StaleLink {
  const expiresAtMs = numbers[at + EXPIRES] ?? Number.NaN
  return {
    longUrl,
    expiresAtMs: Number.isNaN(expiresAtMs) ? null : expiresAtMs,
    seenMs: numbers[at + SEEN] ?? 0,
    fromMs: numbers[at + FROM] ?? 0,
    untilMs: numbers[at + UNTIL] ?? 0,
  }
}

function writeTimes(numbers: Float64Array, at: number, seen: StaleLink): void {
  numbers[at + SEEN] = seen.seenMs
  numbers[at + FROM] = seen.fromMs
  numbers[at + UNTIL] = seen.untilMs
  numbers[at + EXPIRES] = seen.expiresAtMs ?? Number.NaN
}
