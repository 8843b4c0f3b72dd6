// Slots of codes: each valid code has its own, which it keeps when the table is doubled.
import { describe, expect, test } from '@jest/globals'
import { type CodeSlots, createCodeSlots } from './code-slots.ts'

const characters = Array.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-')

/** The slot of a code, or -1. */
function slotOf(slots: CodeSlots, code: string): number {
  return slots.select(code) ? slots.find() : -1
}

/** Assigns the first free slot of its set to a code; returns the slot. */
function take(slots: CodeSlots, code: string): number {
  if (!slots.select(code)) throw new Error(`${code} is no code`)
  const { first, end } = slots.candidates()
  for (let slot = first; slot < end; slot++) {
    if (!slots.isFree(slot)) continue
    slots.take(slot)
    return slot
  }
  throw new Error(`the set of ${code} is full`)
}

describe('a code', () => {
  test.each(['a', '0', '-', '_', 'abcde', 'abcdef', 'abcdefghij', '----------'])(
    'can be %j',
    (code) => {
      expect(createCodeSlots(16).select(code)).toBe(true)
    },
  )

  test.each(['', ' ', 'a b', 'ab ', 'abcde ', 'abcdef+ij', 'abcdefghi.', '\u0000', '\u0100', 'ä'])(
    'cannot be %j',
    (code) => {
      expect(createCodeSlots(16).select(code)).toBe(false)
    },
  )

  test('has at most 10 characters', () => {
    expect(createCodeSlots(16).select('abcdefghijk')).toBe(false)
  })

  test('of one or two characters has its own slot, in a table that is then doubled', () => {
    const codes = characters.flatMap((one) => [one, ...characters.map((other) => one + other)])
    const slots = createCodeSlots(2 ** 15)
    const taken = codes.map((code) => take(slots, code))
    expect(new Set(taken).size).toBe(codes.length)
    expect(codes.map((code) => slotOf(slots, code))).toEqual(taken)
    const moves = new Map<number, number>()
    const larger = slots.doubled((from, to) => moves.set(from, to))
    expect([larger.count, moves.size]).toEqual([2 ** 16, codes.length])
    expect(codes.map((code) => slotOf(larger, code))).toEqual(taken.map((slot) => moves.get(slot)))
  })
})

describe('a set', () => {
  test('has 16 slots, in a table of one set', () => {
    const slots = createCodeSlots(16)
    const codes = characters.slice(0, 16)
    expect(codes.map((code) => take(slots, code))).toEqual([...codes.keys()])
    expect(slots.select(characters[16] ?? '')).toBe(true)
    expect([slots.candidates(), slots.find()]).toEqual([{ first: 0, end: 16 }, -1])
  })

  test('keeps its codes when the table is doubled, even if all its slots are used', () => {
    const slots = createCodeSlots(16)
    const codes = [...characters.slice(0, 14), 'abcdeg', 'abcdeh']
    for (const code of codes) take(slots, code)
    const moved: number[] = []
    const larger = slots.doubled((from) => moved.push(from))
    expect(moved).toEqual([...codes.keys()])
    for (const code of codes) expect(slotOf(larger, code)).toBeGreaterThanOrEqual(0)
  })
})

test('a slot that was freed has no code, and is not moved when the table is doubled', () => {
  const slots = createCodeSlots(16)
  for (const code of ['abcdef', 'g']) take(slots, code)
  slots.free(slotOf(slots, 'abcdef'))
  slots.free(-1)
  expect([slots.isFree(0), slotOf(slots, 'abcdef'), slotOf(slots, 'g')]).toEqual([true, -1, 1])
  const moved: number[] = []
  slots.doubled((from) => moved.push(from))
  expect(moved).toEqual([1])
})
