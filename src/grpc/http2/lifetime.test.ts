// The deadlines of a connection, with a fake clock: each takes effect soon after its time, never
// before it.
import { Duplex } from 'node:stream'
import { afterEach, expect, test } from '@jest/globals'
import type { CallStream } from './call-stream.ts'
import { Http2Connection } from './connection.ts'
import { frameTypes } from './frames.ts'
import { ProcessBounds } from './process-bounds.ts'
import { RoundRobinScheduler } from './round-robin-scheduler.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const cleanups: (() => unknown)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** A short frame. */
function frame([type, flags]: readonly [number, number], streamId: number, payload = ''): Buffer {
  const bytes = Buffer.from(payload, 'latin1')
  return Buffer.concat([Buffer.from([0, 0, bytes.length, type, flags, 0, 0, 0, streamId]), bytes])
}
const opening = Buffer.concat([PREFACE, frame([frameTypes.settings, 0], 0)])
const headers = (streamId: number) => frame([frameTypes.headers, 4], streamId, '\x83\x86\x84')
const isDestroyed = ({ duplex }: { duplex: Duplex }) => duplex.destroyed

/** A connection with a fake clock; its client reads no output if `isFull`. */
function open({ isFull = false } = {}) {
  const stalled: (() => void)[] = []
  let isReading = !isFull
  const written: Buffer[] = []
  const started: CallStream[] = []
  let atMs = 1000
  const duplex = new Duplex({
    highWaterMark: 64,
    read: () => undefined,
    write(chunk: Buffer, _, done) {
      written.push(chunk)
      if (isReading) done()
      else stalled.push(done)
    },
    final: () => undefined, // the client never closes
  })
  cleanups.push(() => duplex.destroy())
  const nowMs = () => atMs
  const bounds = new ProcessBounds(() => undefined)
  const tracked = bounds.open('127.0.0.1', () => undefined)
  if (tracked === undefined) throw new Error('Cannot open a connection: the bounds reject it')
  const connection = new Http2Connection(duplex, {
    budgets: tracked.budgets,
    address: '127.0.0.1',
    scheduler: new RoundRobinScheduler(nowMs),
    startCall: (stream) => started.push(stream),
    nowMs,
    onDefect: (error) => {
      throw error
    },
    onClose: () => undefined,
  })
  const settle = async () => {
    for (let i = 0; i < 4; i += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    ...{ duplex, connection, started },
    /** Types, flags and payloads of the frames written so far. */
    async sent(): Promise<readonly (readonly [type: number, flags: number, payload: string])[]> {
      await settle()
      const bytes = Buffer.concat(written)
      const frames: [number, number, string][] = []
      for (let at = 0; at < bytes.length;) {
        const end = at + 9 + bytes.readUIntBE(at, 3)
        const payload = bytes.toString('hex', at + 9, end)
        frames.push([bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, payload])
        at = end
      }
      return frames
    },
    async send(...frames: readonly Buffer[]) {
      duplex.push(Buffer.concat(frames))
      await settle()
    },
    /** The client reads all output from now on. */
    async readAll() {
      isReading = true
      for (const done of stalled.splice(0)) done()
      await settle()
    },
    /** Sets the clock to `ms` after the start, and checks the deadlines. */
    async checkAt(ms: number) {
      atMs = 1000 + ms
      connection.checkDeadlines(atMs)
      await settle()
    },
  }
}

test('a client must send its preface within 10 s', async () => {
  const silent = open()
  await silent.send(PREFACE.subarray(0, 23))
  await silent.checkAt(10_000)
  expect(isDestroyed(silent)).toBe(false)
  await silent.checkAt(10_001)
  expect(isDestroyed(silent)).toBe(true)
  const prompt = open()
  await prompt.send(opening)
  await prompt.checkAt(10_001)
  expect(isDestroyed(prompt)).toBe(false)
})

const pings = async (one: ReturnType<typeof open>) =>
  (await one.sent()).filter(([type]) => type === frameTypes.ping).length

test('a client silent for 60 s is pinged, and disconnected 20 s later without ack', async () => {
  const silent = open()
  await silent.send(opening)
  await silent.checkAt(60_000)
  expect(await pings(silent)).toBe(0)
  await silent.checkAt(60_001)
  await silent.checkAt(70_000)
  expect(await pings(silent)).toBe(1)
  await silent.checkAt(80_001)
  expect(isDestroyed(silent)).toBe(false)
  await silent.checkAt(80_002)
  expect(isDestroyed(silent)).toBe(true)
})

test('a client that acknowledges the ping is next pinged 60 s later', async () => {
  const alive = open()
  await alive.send(opening)
  await alive.checkAt(60_001)
  await alive.send(frame([frameTypes.ping, 1], 0, 'liveness'))
  await alive.checkAt(120_001)
  expect([isDestroyed(alive), await pings(alive)]).toEqual([false, 1])
  await alive.checkAt(120_002)
  expect(await pings(alive)).toBe(2)
})

const ping = frame([frameTypes.ping, 0], 0, '12345678')

/** A client that reads no output, with so much pending that its socket is paused. */
async function openFull() {
  const full = open({ isFull: true })
  await full.send(opening)
  await full.send(...Array.from({ length: 9 }, () => ping))
  await full.send(ping) // the last PING that is read
  return full
}

test.each([0, 25_000])(
  'a client that has not sent for %d ms, and then does not read for 20 s, is disconnected',
  async (ms) => {
    const full = await openFull()
    expect(full.duplex.isPaused()).toBe(true)
    await full.checkAt(ms)
    await full.checkAt(ms + 20_000)
    expect(isDestroyed(full)).toBe(false)
    await full.checkAt(ms + 20_001)
    expect(isDestroyed(full)).toBe(true)
  },
)

test('a client that reads its output within 20 s is not disconnected', async () => {
  const full = await openFull()
  await full.checkAt(0)
  await full.checkAt(19_000)
  await full.readAll()
  expect(full.duplex.isPaused()).toBe(false)
  await full.checkAt(20_001)
  await full.checkAt(59_999)
  expect(isDestroyed(full)).toBe(false)
})

const goaways = async (one: ReturnType<typeof open>) =>
  (await one.sent()).filter(([type]) => type === frameTypes.goaway).map(([, , payload]) => payload)

test('a graceful shutdown sends its final GOAWAY after 1 s, and closes 1 s later', async () => {
  const closing = open()
  await closing.send(opening)
  closing.connection.startGracefulShutdown()
  await closing.checkAt(1000)
  expect(await goaways(closing)).toEqual(['7fffffff00000000'])
  await closing.checkAt(1001)
  await closing.checkAt(1002)
  expect((await goaways(closing)).slice(1)).toEqual(['0000000000000000'])
  await closing.checkAt(2001)
  expect(isDestroyed(closing)).toBe(false)
  await closing.checkAt(2003)
  expect(isDestroyed(closing)).toBe(true)
})

test('a graceful shutdown sends the final GOAWAY once', async () => {
  const closing = open()
  await closing.send(opening, headers(1))
  for (let times = 0; times < 2; times += 1) closing.connection.startGracefulShutdown()
  for (const ms of [1001, 1500, 2500]) {
    await closing.checkAt(ms)
    await closing.send(ping)
  }
  expect(await goaways(closing)).toEqual(['7fffffff00000000', '0000000100000000'])
  expect(isDestroyed(closing)).toBe(false)
})

test('a protocol error after the final GOAWAY does not increase its Last-Stream-ID', async () => {
  const closing = open()
  await closing.send(opening, headers(1))
  closing.connection.startGracefulShutdown()
  await closing.checkAt(1001)
  await closing.send(headers(7), frame([frameTypes.settings, 0], 1))
  const [, final = '', failed = ''] = await goaways(closing)
  expect([final, failed.slice(0, 16)]).toEqual(['0000000100000000', '0000000100000001'])
})

test('an ack of the shutdown ping triggers the final GOAWAY', async () => {
  const acknowledgement = frame([frameTypes.ping, 1], 0, 'shutdown')
  const closing = open()
  await closing.send(opening, headers(1), acknowledgement)
  expect(await goaways(closing)).toEqual([])
  closing.connection.startGracefulShutdown()
  await closing.send(frame([frameTypes.ping, 1], 0, 'liveness'))
  expect(await goaways(closing)).toHaveLength(1)
  await closing.send(acknowledgement)
  expect((await goaways(closing)).slice(1)).toEqual(['0000000100000000'])
})

test('a paused connection resumes reading once it is closed', async () => {
  const full = await openFull()
  full.connection.startGracefulShutdown()
  await full.checkAt(1001)
  expect(full.duplex.isPaused()).toBe(false)
})

test('a client may send at most 256 KiB after the close of its connection', async () => {
  const broken = open()
  await broken.send(opening, frame([frameTypes.pushPromise, 4], 1))
  for (let chunks = 0; chunks < 4; chunks += 1) await broken.send(Buffer.alloc(64 * 1024))
  expect(isDestroyed(broken)).toBe(false)
  await broken.send(Buffer.alloc(1))
  expect(isDestroyed(broken)).toBe(true)
})

test('a connection is destroyed 1 s after a protocol error', async () => {
  const broken = open()
  await broken.send(opening, frame([frameTypes.pushPromise, 4], 1))
  await broken.checkAt(1000)
  expect(isDestroyed(broken)).toBe(false)
  await broken.checkAt(1001)
  expect(isDestroyed(broken)).toBe(true)
})

test('a stream with an early response is reset after 1 s', async () => {
  const early = open()
  await early.send(opening, headers(1))
  early.started[0]?.rejectHttp(415)
  const resets = async () => (await early.sent()).filter(([type]) => type === frameTypes.rstStream)
  await early.checkAt(999)
  expect(await resets()).toEqual([])
  await early.checkAt(1000)
  expect(await resets()).toEqual([[frameTypes.rstStream, 0, '00000000']])
})

test('a call is closed at its deadline', async () => {
  const timed = open()
  await timed.send(opening, headers(1))
  const [stream] = timed.started
  if (stream === undefined) throw new Error('no call was started')
  stream.deadlineMs = 1000 + 50
  await timed.checkAt(49)
  expect(stream.isClosed).toBe(false)
  await timed.checkAt(50)
  expect(stream.isClosed).toBe(true)
})

test('GOAWAY contains the reason for the close, up to 128 bytes', async () => {
  const opened = open()
  opened.connection.shed(`x${'y'.repeat(1000)}`)
  const reason = Buffer.from(`x${'y'.repeat(127)}`).toString('hex')
  expect((await opened.sent()).at(-1)?.at(2)).toBe(`000000000000000b${reason}`)
})
