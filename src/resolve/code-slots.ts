// A set-associative hash table of codes in typed arrays, outside the heap: it maps a code to one of
// the few slots of its set. The caller stores the values of the slots.

/** A table of slots; `find`, `candidates` and `take` apply to the selected code. */
export interface CodeSlots {
  readonly count: number
  /** Selects the code that the next calls apply to; returns `false` if it is not a valid code. */
  select(code: string): boolean
  /** The slot of the code, or -1. */
  find(): number
  /** The slots that the code may use: from `first` up to, but not including, `end`. */
  readonly candidates: () => { readonly first: number; readonly end: number }
  isFree(slot: number): boolean
  /** Assigns a slot to the code. */
  take(slot: number): void
  /** Frees a slot. Does nothing for -1, which `find` returns if the code has no slot. */
  free(slot: number): void
  /** Copies the codes to a table of twice the size; `onMove` gets the old and new slot of each. */
  doubled(onMove: (from: number, to: number) => void): CodeSlots
}

/** Slots per set (the ways of the table). The first halves of a set's codes fill one cache line. */
const WAYS = 16

/** The base-65 digit of each character of codes, from 1; 0 for all other characters. */
const digits = new Uint8Array(128)
const characters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-'
for (let i = 0; i < characters.length; i++) digits[characters.charCodeAt(i)] = i + 1

const BASE = characters.length + 1
/** Characters in each half of a code: this many fit into a 31-bit integer. */
const HALF = 5

/** Half of a code as a unique number; -1 if it contains a character that no code has. */
function numberOf(code: string, from: number): number {
  let number = 0
  for (let i = from; i < from + HALF; i++) {
    const digit = i < code.length ? (digits[code.charCodeAt(i)] ?? 0) : 0
    if (digit === 0 && i < code.length) return -1
    number = number * BASE + digit
  }
  return number
}

/** Creates a table of free slots; `count` is a power of two, at least WAYS. */
export function createCodeSlots(count: number): CodeSlots {
  const highs = new Int32Array(count) // 0 if the slot is free: the first half of a code is never 0
  const lows = new Int32Array(count)
  const sets = count / WAYS
  let high = 0
  let low = 0
  let first = 0

  const firstSlotOf = (highHalf: number, lowHalf: number) => {
    const mixed = Math.imul(highHalf ^ Math.imul(lowHalf, 0x9e3779b1), 0x85ebca6b)
    return ((mixed ^ (mixed >>> 15)) & (sets - 1)) * WAYS
  }
  return {
    count,
    select(code) {
      high = numberOf(code, 0)
      low = numberOf(code, HALF)
      first = firstSlotOf(high, low)
      return high > 0 && low >= 0 && code.length <= 2 * HALF
    },
    find() {
      for (let slot = first; slot < first + WAYS; slot++)
        if (highs[slot] === high && lows[slot] === low) return slot
      return -1
    },
    candidates: () => ({ first, end: first + WAYS }),
    isFree: (slot) => highs[slot] === 0,
    take(slot) {
      highs[slot] = high
      lows[slot] = low
    },
    free(slot) {
      if (slot >= 0) highs[slot] = 0
    },
    doubled(onMove) {
      const larger = createCodeSlots(count * 2)
      for (let slot = 0; slot < count; slot++) {
        if (highs[slot] === 0) continue // free: only `highs` shows it
        if (larger.select(codeOf(highs[slot] ?? 0, lows[slot] ?? 0))) {
          // No set overflows: each set of the old table is split into two.
          let { first: to } = larger.candidates()
          while (!larger.isFree(to)) to++
          larger.take(to)
          onMove(slot, to)
        }
      }
      return larger
    },
  }
}

/** The code whose halves have these numbers. */
function codeOf(high: number, low: number): string {
  return charactersOf(high) + charactersOf(low)
}

function charactersOf(number: number): string {
  let decoded = ''
  for (let rest = number; rest > 0; rest = Math.floor(rest / BASE)) {
    const digit = rest % BASE
    if (digit > 0) decoded = (characters[digit - 1] ?? '') + decoded
  }
  return decoded
}
