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
    streams,
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
