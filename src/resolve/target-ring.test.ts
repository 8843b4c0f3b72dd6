// Positions of targets: they are valid until newer targets take their bytes.
import { describe, expect, test } from '@jest/globals'
import { createTargetRing } from './target-ring.ts'

/** A ring, and a function that reads a target, or returns `undefined` if it was overwritten. */
function setUp(bytesMax: number) {
  const ring = createTargetRing(bytesMax)
  const write = (target: string, obsolete?: number) => ring.write(target, obsolete)
  const read = (position: number, length: number) =>
    ring.isPresent(position) ? ring.read(position, length) : undefined
  return { ring, write, read }
}

describe('a ring of 16 bytes', () => {
  test('keeps targets of 16 bytes, and not one byte more', () => {
    const { write, read } = setUp(16)
    const positions = ['aaaa', 'bbbb', 'cccc', 'dddd'].map((target) => write(target))
    expect(positions.map((at) => read(at, 4))).toEqual(['aaaa', 'bbbb', 'cccc', 'dddd'])
    const next = write('e')
    expect(read(next, 1)).toBe('e')
    expect(positions.map((at) => read(at, 4))).toEqual([undefined, 'bbbb', 'cccc', 'dddd'])
  })

  test('writes a target that does not fit at its end to its start', () => {
    const { write, read } = setUp(16)
    const [first, second, third] = [write('a'.repeat(6)), write('b'.repeat(6)), write('ccccc')]
    expect([first, second, third]).toEqual([0, 6, 16])
    expect([read(first, 6), read(second, 6), read(third, 5)]).toEqual([
      ...[undefined, 'bbbbbb', 'ccccc'],
    ])
  })

  test('writes a target that fits exactly at its end there', () => {
    const { write, read } = setUp(16)
    expect([write('a'.repeat(10)), write('b'.repeat(6))]).toEqual([0, 10])
    expect([read(0, 10), read(10, 6)]).toEqual(['a'.repeat(10), 'b'.repeat(6)])
  })
})

describe('an obsolete target', () => {
  test('is replaced at its position, if the ring does not soon overwrite it', () => {
    const { write, read } = setUp(16)
    const positions = [write('aaaa'), write('bbbb')]
    expect(write('cccc', positions[1])).toBe(4)
    expect([read(0, 4), read(4, 4)]).toEqual(['aaaa', 'cccc'])
  })

  test('is not replaced at its position if the ring soon overwrites it', () => {
    const { write, read } = setUp(16)
    const positions = ['aaaa', 'bbbb', 'cccc'].map((target) => write(target))
    expect(write('dddd', positions[0])).toBe(12)
    expect([read(0, 4), read(12, 4)]).toEqual(['aaaa', 'dddd'])
  })
})

test('a ring that grows keeps all targets, and their positions', () => {
  const { write, read } = setUp(2 ** 16)
  const targets = Array.from({ length: 2 ** 10 }, (_, at) => String(at).padStart(64, '.'))
  const positions = targets.map((target) => write(target))
  expect(positions.map((at) => read(at, 64))).toEqual(targets)
  write('x')
  expect(read(0, 64)).toBeUndefined()
  expect(read(64, 64)).toBe(targets[1])
})
