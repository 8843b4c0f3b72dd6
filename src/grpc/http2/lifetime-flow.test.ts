// The flow and the close of one connection's lifetime, without streams: when its socket is paused,
// and what is still sent once it is closed.
import { describe, expect, jest, test } from '@jest/globals'
import { countedBudget, openPipe, settle } from '../../../test/kit/ratelimit/http2-connection.ts'
import { FrameOutput } from './frame-output.ts'
import { errorCodes, frameTypes, MAX_STREAM_ID, sentFrames } from './frames.ts'
import { Lifetime } from './lifetime.ts'

const SHUTDOWN = Buffer.from('shutdown')

function openLifetime(highWaterMark?: number) {
  const pipe = openPipe(highWaterMark)
  const budget = countedBudget()
  const output = new FrameOutput(pipe.duplex, budget)
  const lifetime = new Lifetime(pipe.duplex, output, 0)
  const types = () => {
    output.flush()
    return pipe.frames().map(({ type }) => type)
  }
  return { ...pipe, budget, output, lifetime, types }
}

describe('the socket', () => {
  function openFull() {
    const opened = openLifetime(64)
    opened.reads(false)
    for (let i = 0; i < 4; i += 1) opened.output.frame(sentFrames.ping, 0, Buffer.alloc(8))
    opened.output.flush()
    expect(opened.output.isFull).toBe(true)
    return opened
  }

  test('is paused while input is backlogged', () => {
    const { lifetime, duplex } = openLifetime()
    const pause = jest.spyOn(duplex, 'pause')
    const resume = jest.spyOn(duplex, 'resume')
    lifetime.setBacklogged(false)
    expect([duplex.isPaused(), resume.mock.calls.length]).toEqual([false, 0])
    for (let times = 0; times < 2; times += 1) lifetime.setBacklogged(true)
    expect([duplex.isPaused(), pause.mock.calls.length]).toEqual([true, 1])
    for (let times = 0; times < 2; times += 1) lifetime.setBacklogged(false)
    expect([duplex.isPaused(), resume.mock.calls.length]).toEqual([false, 1])
  })

  test('is paused while the client does not read, even without backlogged input', async () => {
    const { lifetime, duplex, reads, output } = openFull()
    lifetime.setBacklogged(false)
    expect(duplex.isPaused()).toBe(true)
    reads(true)
    await settle()
    expect([output.isFull, duplex.isPaused()]).toEqual([false, false])
  })

  test('is not paused when the client has read before any input was backlogged', async () => {
    const { duplex, reads, output } = openFull()
    reads(true)
    await settle()
    expect([output.isFull, duplex.isPaused()]).toEqual([false, false])
  })

  test('stays paused after the client has read, while input is backlogged', async () => {
    const { lifetime, duplex, reads, output } = openFull()
    lifetime.setBacklogged(true)
    reads(true)
    await settle()
    expect([output.isFull, duplex.isPaused()]).toEqual([false, true])
  })

  test('is not paused once the connection is closed', () => {
    const { lifetime, duplex } = openFull()
    lifetime.setBacklogged(true)
    expect(duplex.isPaused()).toBe(true)
    lifetime.close(0)
    lifetime.setBacklogged(true)
    expect(duplex.isPaused()).toBe(false)
  })
})

describe('the output', () => {
  test('that the client has not read is counted at each check', async () => {
    const { lifetime, budget, output, reads } = openLifetime()
    reads(false)
    output.frame(sentFrames.ping, 0, Buffer.alloc(8))
    await settle()
    expect(budget.held).toBe(0)
    lifetime.checkDeadlines(1, true)
    expect(budget.held).toBe(17 + 1024)
    reads(true)
    await settle()
    lifetime.checkDeadlines(2, true)
    expect(budget.held).toBe(0)
  })

  test('is flushed by the close, which is repeated without effect', () => {
    const { lifetime, duplex, chunks, output } = openLifetime()
    output.goaway(1, errorCodes.protocol)
    lifetime.close(0)
    expect([chunks.length, duplex.writableEnded, lifetime.isClosed]).toEqual([1, true, true])
    lifetime.close(900)
    lifetime.checkDeadlines(1000, true)
    expect(duplex.destroyed).toBe(false)
    lifetime.checkDeadlines(1001, true)
    expect(duplex.destroyed).toBe(true)
  })
})

describe('a closed connection', () => {
  test('sends no GOAWAY and no PING', () => {
    const { lifetime, types } = openLifetime()
    lifetime.startGracefulShutdown(0)
    lifetime.pingAcknowledged(SHUTDOWN)
    expect(types()).toEqual([frameTypes.goaway, frameTypes.ping])
    lifetime.close(0)
    lifetime.sendFinalGoaway(1)
    expect([types().length, lifetime.isFinalGoawaySent]).toEqual([2, false])
    const other = openLifetime()
    other.lifetime.close(60_000)
    other.lifetime.startGracefulShutdown(60_000)
    other.lifetime.checkDeadlines(60_500, true)
    expect([other.types(), other.duplex.destroyed]).toEqual([[], false])
  })

  test('counts the bytes that it discards', () => {
    const { lifetime, duplex } = openLifetime()
    lifetime.close(0)
    lifetime.discard(128 * 1024)
    lifetime.discard(128 * 1024)
    expect(duplex.destroyed).toBe(false)
    lifetime.discard(1)
    expect(duplex.destroyed).toBe(true)
  })
})

describe('the final GOAWAY', () => {
  test('has the last stream, and is sent once after the ack of the shutdown ping', () => {
    const { lifetime, frames, types } = openLifetime()
    lifetime.pingAcknowledged(SHUTDOWN) // before the shutdown
    lifetime.startGracefulShutdown(0)
    lifetime.sendFinalGoaway(5)
    lifetime.pingAcknowledged(Buffer.from('liveness'))
    lifetime.sendFinalGoaway(5)
    expect([types(), lifetime.isFinalGoawaySent]).toEqual([[7, 6], false])
    lifetime.pingAcknowledged(SHUTDOWN)
    lifetime.sendFinalGoaway(5)
    lifetime.sendFinalGoaway(7)
    expect([types(), lifetime.isFinalGoawaySent]).toEqual([[7, 6, 7], true])
    const lastStreams = [0, 2].map((i) => frames()[i]?.payload.readUInt32BE())
    expect(lastStreams).toEqual([MAX_STREAM_ID, 5])
  })

  test('is not sent without a shutdown', () => {
    const { lifetime, types } = openLifetime()
    lifetime.received(9000)
    lifetime.checkDeadlines(9000, true)
    lifetime.sendFinalGoaway(1)
    expect(types()).toEqual([])
  })

  test('is sent 1 s after the first shutdown, even if the shutdown is repeated', () => {
    const { lifetime, types } = openLifetime()
    lifetime.startGracefulShutdown(0)
    lifetime.startGracefulShutdown(900)
    for (const ms of [1000, 1001]) {
      lifetime.checkDeadlines(ms, true)
      lifetime.sendFinalGoaway(1)
      expect(types()).toEqual(ms === 1000 ? [7, 6] : [7, 6, 7])
    }
  })
})
