// An HTTP/2 connection without a socket, with a fake clock and budgets of any size.
import { Duplex } from 'node:stream'
import type { Frame } from '../../../loadtest/bench/http2-frame.ts'
import { CallStream, type StreamHost } from '../../../src/grpc/http2/call-stream.ts'
import { Http2Connection } from '../../../src/grpc/http2/connection.ts'
import { FrameOutput } from '../../../src/grpc/http2/frame-output.ts'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import type { HeaderField } from '../../../src/grpc/http2/hpack-decoder.ts'
import type { Budget } from '../../../src/grpc/http2/process-bounds.ts'
import { ResponseHeaders } from '../../../src/grpc/http2/response-headers.ts'
import { RoundRobinScheduler } from '../../../src/grpc/http2/round-robin-scheduler.ts'
import { framesOf } from './grpc-frames.ts'

/** A budget whose state a test reads, and whose maximum a test changes. */
export interface CountedBudget extends Budget {
  held: number
  max: number
}

/** Creates a budget. */
export function countedBudget(max = Infinity): CountedBudget {
  const budget: CountedBudget = {
    held: 0,
    max,
    acquire(amount) {
      if (budget.held + amount > budget.max) return false
      budget.held += amount
      return true
    },
    release(amount) {
      budget.held -= amount
    },
  }
  return budget
}

function countedBudgets(outputMax = Infinity) {
  return {
    connections: countedBudget(),
    streams: countedBudget(),
    headers: countedBudget(),
    messages: countedBudget(),
    input: countedBudget(),
    output: countedBudget(outputMax),
  }
}

/** Resolves after a few turns of the event loop: enough for all frames that were sent. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 6; i += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** A stream that collects what is written to it. */
export interface Pipe {
  readonly duplex: Duplex
  readonly chunks: readonly Buffer[]
  /** The frames written so far. */
  readonly frames: () => readonly Frame[]
  /** While false, the client reads nothing; each pending write completes once it is true. */
  readonly reads: (isReading: boolean) => void
}

/** Creates a pipe; its socket is full after `highWaterMark` unread bytes. */
export function openPipe(highWaterMark = 64 * 1024): Pipe {
  const chunks: Buffer[] = []
  const stalled: (() => void)[] = []
  let reads = true
  const duplex = new Duplex({
    highWaterMark,
    read: () => undefined,
    write(chunk: Buffer, _, done) {
      chunks.push(chunk)
      if (reads) done()
      else stalled.push(done)
    },
    final: () => undefined, // the client never closes
  })
  return {
    duplex,
    chunks,
    frames: () => framesOf(Buffer.concat(chunks)),
    reads(isReading) {
      reads = isReading
      for (const done of isReading ? stalled.splice(0) : []) done()
    },
  }
}

type StartCall = (stream: CallStream, fields: readonly HeaderField[] | undefined) => void

/** Opens a connection; its clock starts at 1000 ms. */
export function openConnection(startCall: StartCall = () => undefined, pipe = openPipe()) {
  const clock = { ms: 1000 }
  const nowMs = () => clock.ms
  const started: CallStream[] = []
  const defects: unknown[] = []
  let closes = 0
  const budgets = countedBudgets()
  const connection = new Http2Connection(pipe.duplex, {
    startCall(stream, fields) {
      started.push(stream)
      startCall(stream, fields)
    },
    ...{ nowMs, budgets, address: 'a', scheduler: new RoundRobinScheduler(nowMs) },
    onDefect: (error) => defects.push(error),
    onClose: () => (closes += 1),
  })
  return {
    ...pipe,
    ...{ connection, clock, started, defects, budgets },
    /** How often the connection reported its close. */
    closes: () => closes,
    /** Sends frames to the connection. */
    send: async (...frames: readonly Buffer[]) => {
      pipe.duplex.push(Buffer.concat(frames))
      await settle()
    },
    /** Sets the clock to `ms` after the start, and checks the deadlines. */
    checkAt: async (ms: number) => {
      clock.ms = 1000 + ms
      connection.checkDeadlines(clock.ms)
      await settle()
    },
    /** Streams and error codes of the resets sent so far. */
    resets: () =>
      pipe
        .frames()
        .filter(({ type }) => type === frameTypes.rstStream)
        .map(({ stream, payload }) => [stream, payload.readUInt32BE()]),
    /** Last stream ids and error codes of the GOAWAY frames sent so far. */
    goaways: () =>
      pipe
        .frames()
        .filter(({ type }) => type === frameTypes.goaway)
        .map(({ payload }) => [payload.readUInt32BE(), payload.readUInt32BE(4)]),
  }
}

/**
 * Opens a stream with these windows; its budgets are counted, and its effects on the connection are
 * recorded as events.
 */
export function openStream({
  sendWindow = 65_535,
  connectionWindow = 65_535,
  outputMax = Infinity,
} = {}) {
  const pipe = openPipe()
  const budgets = countedBudgets(outputMax)
  const output = new FrameOutput(pipe.duplex, budgets.output)
  const events: string[] = []
  const jobs: (() => void)[] = []
  const host: StreamHost = {
    ...{ output, budgets, responseHeaders: new ResponseHeaders(), sendWindow: connectionWindow },
    responded: (_, isOk) => events.push(isOk ? 'responded' : 'rejected'),
    spend: (amount) => events.push(`spend ${amount}`),
    runLater: (job) => jobs.push(job),
    reset: (_, code) => events.push(`reset ${code}`),
    remove: () => events.push('remove'),
    freeSlot: () => events.push('free slot'),
    block: () => events.push('block'),
  }
  const stream = new CallStream(host, 1, sendWindow)
  stream.listener = {
    receive: () => undefined,
    drained: () => events.push('drained'),
    closed: () => events.push('closed'),
  }
  return {
    ...{ stream, host, events, jobs, budgets },
    /** Types and flags of the frames sent so far; of DATA also the size. */
    sent: () => {
      output.flush()
      return pipe.frames().map(({ type, flags, payload }) => {
        const size = type === frameTypes.data ? ` ${payload.length}` : ''
        return `${type} ${flags}${size}`
      })
    },
    /** The stream ids of these frames. */
    streamIds: () => pipe.frames().map((one) => one.stream),
    payloads: () => Buffer.concat(pipe.frames().map(({ payload }) => payload)),
  }
}
