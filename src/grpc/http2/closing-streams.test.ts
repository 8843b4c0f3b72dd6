// The grace period of streams whose response was sent before their request was complete.
import { Duplex } from 'node:stream'
import { expect, test } from '@jest/globals'
import { ClosingStreams } from './closing-streams.ts'
import { FrameOutput } from './frame-output.ts'
import { errorCodes, frameTypes } from './frames.ts'
import { ProcessBounds } from './process-bounds.ts'

function openClosingStreams() {
  const bounds = new ProcessBounds(() => undefined)
  const budgets = bounds.open('127.0.0.1', () => undefined)?.budgets
  if (budgets === undefined) throw new Error('Cannot open a connection: the bounds reject it')
  const written: Buffer[] = []
  const duplex = new Duplex({
    write(chunk: Buffer, _, done) {
      written.push(chunk)
      done()
    },
  })
  const output = new FrameOutput(duplex, budgets.output)
  const streams = new ClosingStreams(output, budgets.streams)
  return {
    ...{ streams, budget: budgets.streams },
    slotsUsed: () => bounds.usage.streams.used,
    /** The types of the frames written so far. */
    sent: () => {
      output.flush()
      return written.map((chunk) => chunk[3])
    },
  }
}

test('frames are accepted until END_STREAM, which frees the slot and needs no reset', () => {
  const { streams, slotsUsed, sent } = openClosingStreams()
  streams.add(1, 0)
  expect([streams.acceptFrame(1, false), slotsUsed()]).toEqual([true, 1])
  expect([streams.acceptFrame(1, true), slotsUsed()]).toEqual([true, 0])
  expect(streams.acceptFrame(1, false)).toBe(false)
  streams.resetExpired(1e9)
  expect(sent()).toEqual([])
})

test('a stream without END_STREAM is reset after 1 s', () => {
  const { streams, slotsUsed, sent } = openClosingStreams()
  streams.add(1, 0)
  streams.resetExpired(999)
  expect(sent()).toEqual([])
  streams.resetExpired(1000)
  expect([sent(), slotsUsed()]).toEqual([[frameTypes.rstStream], 0])
  expect([streams.acceptFrame(1, false), streams.wasReset(1)]).toEqual([false, true])
})

test('the ids of the last 128 reset streams are kept', () => {
  const { streams } = openClosingStreams()
  const ids = Array.from({ length: 1000 }, (_, i) => 2 * i + 1)
  for (const id of ids) streams.reset(id, errorCodes.protocol)
  expect(ids.filter((id) => streams.wasReset(id))).toEqual(ids.slice(-128))
})

test('a stream is reset if it is closed during its grace period, and frees its slot', () => {
  const { streams, slotsUsed, sent } = openClosingStreams()
  streams.add(1, 0)
  streams.add(3, 0)
  streams.reset(1, errorCodes.protocol)
  expect([sent(), slotsUsed()]).toEqual([[frameTypes.rstStream], 1])
  expect([streams.acceptFrame(1, false), streams.acceptFrame(3, false)]).toEqual([false, true])
  expect([streams.remove(1), streams.remove(3), streams.remove(3), slotsUsed()]).toEqual([
    ...[false, true, false],
    0,
  ])
})

test('only the streams whose grace period is over are reset', () => {
  const { streams, slotsUsed } = openClosingStreams()
  for (const [i, id] of [1, 3, 5].entries()) streams.add(id, i * 100)
  streams.resetExpired(1100)
  expect([1, 3, 5].map((id) => streams.wasReset(id))).toEqual([true, true, false])
  expect([streams.acceptFrame(5, false), slotsUsed()]).toEqual([true, 1])
})

test('at most 1000 streams have a grace period; the next is reset immediately', () => {
  const { streams, slotsUsed, sent } = openClosingStreams()
  for (let i = 0; i < 1000; i += 1) streams.add(2 * i + 1, 0)
  expect([sent(), slotsUsed()]).toEqual([[], 1000])
  streams.add(2001, 0)
  expect([sent(), slotsUsed(), streams.wasReset(2001)]).toEqual([
    [frameTypes.rstStream],
    1000,
    true,
  ])
  expect([streams.acceptFrame(2001, false), streams.acceptFrame(1999, false)]).toEqual([
    false,
    true,
  ])
})

test('a stream is reset immediately if the budget does not allow a grace period', () => {
  const { streams, budget, slotsUsed, sent } = openClosingStreams()
  budget.acquire(20_000) // half of the bound
  streams.add(1, 0)
  expect([sent(), streams.acceptFrame(1, false)]).toEqual([[frameTypes.rstStream], false])
  budget.release(1)
  streams.add(3, 0)
  expect([streams.acceptFrame(3, false), slotsUsed()]).toEqual([true, 20_000])
})

test('cleared streams release their slots once, and are dropped', () => {
  const { streams, slotsUsed } = openClosingStreams()
  for (const id of [1, 3]) streams.add(id, 0)
  streams.reset(5, errorCodes.protocol)
  for (let times = 0; times < 2; times += 1) streams.clear()
  expect(slotsUsed()).toBe(0)
  expect([streams.acceptFrame(1, false), streams.wasReset(5)]).toEqual([false, false])
})
