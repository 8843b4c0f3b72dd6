// What came on a connection is worked on by slices; meanwhile it is counted, nothing is read. By a
// clock of the test's own.
import { Duplex } from 'node:stream'
import { expect, test } from '@jest/globals'
import { FrameOutput } from './frame-output.ts'
import { FrameReader } from './frame-reader.ts'
import { errorCodes } from './frames.ts'
import { Intake } from './intake.ts'
import { Lifetime } from './lifetime.ts'
import { ProcessBounds } from './process-bounds.ts'
import { ProtocolError } from './protocol-error.ts'
import { Turns } from './turns.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const READ_AHEAD_BYTES = 7 * 1024
const FRAME_BYTES = 10

/** Frames of one byte that are numbered by their streams. */
function frames(from: number, to: number): Buffer {
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at)
  return Buffer.concat(numbers.map((number) => Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, number, 0])))
}
const longFrame = Buffer.concat([Buffer.from([0, 4, 0, 0, 0, 0, 0, 0, 99]), Buffer.alloc(1024)])

/** An intake that takes `msEach` for a frame, and may hold `heldMax` bytes. */
function openIntake({ msEach = 0, heldMax = Infinity } = {}) {
  const clock = { ms: 0 }
  const nowMs = () => clock.ms
  const done: (number | string)[] = []
  const errors: unknown[] = []
  const budget = {
    held: 0,
    take(amount: number) {
      if (budget.held + amount > heldMax) return false
      budget.held += amount
      return true
    },
    give(amount: number) {
      budget.held -= amount
    },
  }
  const duplex = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, written) => {
      written()
    },
  })
  const lifetime = new Lifetime(duplex, new FrameOutput(duplex, budget), 0)
  const turns = new Turns(nowMs)
  const intake = new Intake({
    ...{ address: 'a', turns, lifetime, reader: new FrameReader(), budget, nowMs },
    socket: duplex,
    connection: {
      takeFrame({ stream }) {
        done.push(stream)
        clock.ms += msEach
      },
      fail(error) {
        errors.push(error)
        lifetime.end(clock.ms)
        intake.clear()
      },
    },
  })
  intake.add(PREFACE)
  return {
    ...{ intake, clock, done, errors, budget, duplex, turns },
    turn: () => new Promise((resolve) => setImmediate(resolve)),
  }
}

test('a frame that is not whole is late after 10 s, and the next has its own time', () => {
  const { intake, clock } = openIntake()
  const bytes = frames(1, 2)
  intake.add(bytes.subarray(0, FRAME_BYTES - 1))
  expect([intake.look(10_000), intake.look(10_001)]).toEqual([false, true])
  clock.ms = 9000
  intake.add(bytes.subarray(FRAME_BYTES - 1, 2 * FRAME_BYTES - 1))
  expect([intake.look(19_000), intake.look(19_001)]).toEqual([false, true])
  intake.add(bytes.subarray(2 * FRAME_BYTES - 1))
  expect(intake.look(1e9)).toBe(false)
})

test('what is not worked on in a slice is counted, and nothing more is read', async () => {
  const { intake, done, budget, duplex, turn } = openIntake({ msEach: 1 })
  intake.add(frames(1, 10))
  expect(done).toEqual([1, 2, 3, 4]) // the clock is looked at after each fourth
  expect(duplex.isPaused()).toBe(true)
  expect(budget.held).toBe(6 * FRAME_BYTES + READ_AHEAD_BYTES)
  intake.add(frames(11, 12))
  expect(budget.held).toBe(8 * FRAME_BYTES + READ_AHEAD_BYTES)
  expect(intake.look(1e9)).toBe(false) // it waits for us, not for its client
  for (let turns = 0; turns < 4; turns += 1) await turn()
  expect(done).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  expect([budget.held, duplex.isPaused()]).toEqual([0, false])
})

test('what a paused socket has read is counted at the next look', async () => {
  const { intake, budget, duplex, turn } = openIntake({ msEach: 1 })
  intake.add(frames(1, 10))
  duplex.push(Buffer.alloc(2 * READ_AHEAD_BYTES))
  intake.look(0)
  expect(budget.held).toBe(6 * FRAME_BYTES + 2 * READ_AHEAD_BYTES)
  duplex.destroy()
  await turn()
})

test('2,000 connections of one address may all wait, each with a full HPACK table', () => {
  const bounds = new ProcessBounds(() => undefined)
  for (let i = 0; i < 2000; i += 1) {
    const share = bounds.open('10.0.0.1', () => {
      throw new Error('Cannot hold them: a connection is shed')
    })
    expect(share?.parts.input.take(1024 + READ_AHEAD_BYTES)).toBe(true)
    expect(share?.parts.headers.take(3 * 4096)).toBe(true)
  }
})

test('the clock is looked at after each long frame', () => {
  const { intake, done } = openIntake({ msEach: 1 })
  intake.add(Buffer.concat([longFrame, longFrame]))
  expect(done).toEqual([99])
})

test('an intake that keeps nothing any more gives back all, once', async () => {
  const { intake, done, budget, turn } = openIntake({ msEach: 1 })
  intake.add(frames(1, 10))
  intake.later(() => done.push('job'))
  intake.clear()
  intake.clear()
  expect(budget.held).toBe(0)
  await turn()
  expect(done).toEqual([1, 2, 3, 4])
})

test('a connection whose frames would take more than its share ends', () => {
  const heldMax = 6 * FRAME_BYTES + READ_AHEAD_BYTES
  const fits = openIntake({ msEach: 1, heldMax })
  fits.intake.add(frames(1, 10))
  expect(fits.errors).toEqual([])
  const exceeds = openIntake({ msEach: 1, heldMax: heldMax - 1 })
  exceeds.intake.add(frames(1, 10))
  expect(exceeds.errors).toEqual([expect.any(ProtocolError)])
  expect(exceeds.errors).toMatchObject([{ code: errorCodes.enhanceYourCalm }])
  expect(exceeds.budget.held).toBe(0)
})

test('work that is put off is done by slices too, and nothing is read before it', async () => {
  const { intake, clock, done, duplex, turns, turn } = openIntake()
  for (const name of ['first', 'second']) {
    intake.later(() => {
      clock.ms += 1
      done.push(name)
    })
  }
  turns.defer({
    address: 'b',
    work() {
      done.push('other')
      return false
    },
  })
  expect(duplex.isPaused()).toBe(true)
  await turn()
  expect(done).toEqual(['first', 'other', 'second'])
  await turn()
  expect(duplex.isPaused()).toBe(false)
})
