// A table that gives each code a numbered place, in blocks of bytes beside the heap. A code may
// stand in a few places only; what is written at a place is its user's.

/** Places, of which one code at a time is meant. */
export interface CodePlaces {
  readonly count: number
  /** Says which code the calls below mean; `false`: it can be no code, and none is meant. */
  choose(code: string): boolean
  /** Where the code stands, or -1. */
  find(): number
  /** Each place where the code may stand. */
  readonly candidates: () => { readonly first: number; readonly end: number }
  isFree(place: number): boolean
  /** Gives a place to the code. */
  take(place: number): void
  free(place: number): void
  /** The same codes in twice as many places; `onMove` is told of each code's places. */
  grown(onMove: (from: number, to: number) => void): CodePlaces
}

/** A code has so many places where it may stand. */
const WAYS = 8

/** The digit of each character of a code, from 1; 0 for all other characters. */
const digits = new Uint8Array(128)
const characters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-'
for (let i = 0; i < characters.length; i++) digits[characters.charCodeAt(i)] = i + 1

const BASE = characters.length + 1
/** So many characters make a number of 31 bits. */
const HALF = 5

/** Half of a code as a number, another for each; -1 where it holds what no code does. */
function numberOf(code: string, from: number): number {
  let number = 0
  for (let i = from; i < from + HALF; i++) {
    const digit = i < code.length ? (digits[code.charCodeAt(i)] ?? 0) : 0
    if (digit === 0 && i < code.length) return -1
    number = number * BASE + digit
  }
  return number
}

/** Makes free places: a power of two, WAYS at least. */
export function createCodePlaces(count: number): CodePlaces {
  const highs = new Int32Array(count) // 0 where the place is free: no code's first half is 0
  const lows = new Int32Array(count)
  const sets = count / WAYS
  let high = 0
  let low = 0
  let first = 0

  const firstOf = (one: number, other: number) => {
    const mixed = Math.imul(one ^ Math.imul(other, 0x9e3779b1), 0x85ebca6b)
    return ((mixed ^ (mixed >>> 15)) & (sets - 1)) * WAYS
  }
  return {
    count,
    choose(code) {
      high = numberOf(code, 0)
      low = numberOf(code, HALF)
      first = firstOf(high, low)
      return high > 0 && low >= 0 && code.length <= 2 * HALF
    },
    find() {
      for (let place = first; place < first + WAYS; place++)
        if (highs[place] === high && lows[place] === low) return place
      return -1
    },
    candidates: () => ({ first, end: first + WAYS }),
    isFree: (place) => highs[place] === 0,
    take(place) {
      highs[place] = high
      lows[place] = low
    },
    free(place) {
      highs[place] = 0
    },
    grown(onMove) {
      const more = createCodePlaces(count * 2)
      for (let place = 0; place < count; place++) {
        const code = codeOf(highs[place] ?? 0, lows[place] ?? 0)
        if (code !== '' && more.choose(code)) {
          // No set can be too full: each was one half of a set here.
          const { first: from } = more.candidates()
          let to = from
          while (!more.isFree(to)) to++
          more.take(to)
          onMove(place, to)
        }
      }
      return more
    },
  }
}

/** The code of these numbers. */
function codeOf(high: number, low: number): string {
  return textOf(high) + textOf(low)
}

function textOf(number: number): string {
  let text = ''
  for (let rest = number; rest > 0; rest = Math.floor(rest / BASE)) {
    const digit = rest % BASE
    if (digit > 0) text = (characters[digit - 1] ?? '') + text
  }
  return text
}
