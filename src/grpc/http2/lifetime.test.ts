// The times of a connection, by a clock of the test's own: each limit acts soon after its time, and
// not before.
import { Duplex } from 'node:stream'
import { afterEach, expect, test } from '@jest/globals'
import type { CallStream } from './call-stream.ts'
import { Http2Connection } from './connection.ts'
import { frameTypes } from './frames.ts'
import { ProcessBounds } from './process-bounds.ts'
import { Turns } from './turns.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const ends: (() => unknown)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** A frame; its stream and payload are short. */
function frame([type, flags]: readonly [number, number], stream: number, payload = ''): Buffer {
  const bytes = Buffer.from(payload, 'latin1')
  return Buffer.concat([Buffer.from([0, 0, bytes.length, type, flags, 0, 0, 0, stream]), bytes])
}
const opening = Buffer.concat([PREFACE, frame([frameTypes.settings, 0], 0)])
const headers = (stream: number) => frame([frameTypes.headers, 4], stream, '\x83\x86\x84')
const isDestroyed = ({ duplex }: { duplex: Duplex }) => duplex.destroyed

/** A connection whose clock stands until the test moves it; nothing written is read if `isFull`. */
function open({ isFull = false } = {}) {
  const stalled: (() => void)[] = []
  let isReading = !isFull
  const written: Buffer[] = []
  const begun: CallStream[] = []
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
  ends.push(() => duplex.destroy())
  const nowMs = () => atMs
  const bounds = new ProcessBounds(() => undefined)
  const share = bounds.open('127.0.0.1', () => undefined)
  if (share === undefined) throw new Error('Cannot open a connection: the bounds reject it')
  const connection = new Http2Connection(duplex, {
    share: share.parts,
    address: '127.0.0.1',
    turns: new Turns(nowMs),
    begin: (stream) => begun.push(stream),
    nowMs,
    onDefect: (error) => {
      throw error
    },
    onGone: () => undefined,
  })
  const settle = async () => {
    for (let i = 0; i < 4; i += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    ...{ duplex, connection, begun },
    /** Types, flags and first payload bytes of the frames written so far. */
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
    /** The client reads what it was sent, and all that follows. */
    async readAll() {
      isReading = true
      for (const done of stalled.splice(0)) done()
      await settle()
    },
    /** Moves the clock and looks; by so many ms after the start. */
    async lookAt(ms: number) {
      atMs = 1000 + ms
      connection.look(atMs)
      await settle()
    },
  }
}

test('a client has 10 s for its preface', async () => {
  const silent = open()
  await silent.send(PREFACE.subarray(0, 23))
  await silent.lookAt(10_000)
  expect(isDestroyed(silent)).toBe(false)
  await silent.lookAt(10_001)
  expect(isDestroyed(silent)).toBe(true)
  const prompt = open()
  await prompt.send(opening)
  await prompt.lookAt(10_001)
  expect(isDestroyed(prompt)).toBe(false)
})

const pings = async (one: ReturnType<typeof open>) =>
  (await one.sent()).filter(([type]) => type === frameTypes.ping).length

test('a silent client is pinged after 60 s, and cut 20 s later without an answer', async () => {
  const silent = open()
  await silent.send(opening)
  await silent.lookAt(60_000)
  expect(await pings(silent)).toBe(0)
  await silent.lookAt(60_001)
  await silent.lookAt(70_000)
  expect(await pings(silent)).toBe(1)
  await silent.lookAt(80_001)
  expect(isDestroyed(silent)).toBe(false)
  await silent.lookAt(80_002)
  expect(isDestroyed(silent)).toBe(true)
})

test('a client that answers the ping is pinged again 60 s later', async () => {
  const alive = open()
  await alive.send(opening)
  await alive.lookAt(60_001)
  await alive.send(frame([frameTypes.ping, 1], 0, 'are you?'))
  await alive.lookAt(120_001)
  expect([isDestroyed(alive), await pings(alive)]).toEqual([false, 1])
  await alive.lookAt(120_002)
  expect(await pings(alive)).toBe(2)
})

const ping = frame([frameTypes.ping, 0], 0, '12345678')

/** A client that reads nothing, and has been sent so much that nothing more is read of it. */
async function openFull() {
  const full = open({ isFull: true })
  await full.send(opening)
  await full.send(...Array.from({ length: 9 }, () => ping))
  await full.send(ping) // is read yet, and none after it
  return full
}

test('a client that does not read is cut after 20 s', async () => {
  const full = await openFull()
  expect(full.duplex.isPaused()).toBe(true)
  await full.lookAt(20_000)
  expect(isDestroyed(full)).toBe(false)
  await full.lookAt(20_001)
  expect(isDestroyed(full)).toBe(true)
})

test('a client that reads after a stall is not cut 20 s after the stall began', async () => {
  const full = await openFull()
  await full.lookAt(19_000)
  await full.readAll()
  expect(full.duplex.isPaused()).toBe(false)
  await full.lookAt(20_001)
  await full.lookAt(59_999)
  expect(isDestroyed(full)).toBe(false)
})

const goAways = async (one: ReturnType<typeof open>) =>
  (await one.sent()).filter(([type]) => type === frameTypes.goAway).map(([, , payload]) => payload)

test('a client that must go learns its last stream after 1 s, and is cut 1 s later', async () => {
  const leaving = open()
  await leaving.send(opening)
  leaving.connection.leave()
  await leaving.lookAt(1000)
  expect(await goAways(leaving)).toEqual(['7fffffff00000000'])
  await leaving.lookAt(1001)
  await leaving.lookAt(1002)
  expect((await goAways(leaving)).slice(1)).toEqual(['0000000000000000'])
  await leaving.lookAt(2001)
  expect(isDestroyed(leaving)).toBe(false)
  await leaving.lookAt(2003)
  expect(isDestroyed(leaving)).toBe(true)
})

test('a client that must go is sent its last stream once, whatever it does then', async () => {
  const leaving = open()
  await leaving.send(opening, headers(1))
  for (let times = 0; times < 2; times += 1) leaving.connection.leave()
  for (const ms of [1001, 1500, 2500]) {
    await leaving.lookAt(ms)
    await leaving.send(ping)
  }
  expect(await goAways(leaving)).toEqual(['7fffffff00000000', '0000000100000000'])
  expect(isDestroyed(leaving)).toBe(false)
})

test('a client that acknowledges the last ping is sent its last stream at once', async () => {
  const acknowledgement = frame([frameTypes.ping, 1], 0, 'leaving.')
  const leaving = open()
  await leaving.send(opening, headers(1), acknowledgement)
  expect(await goAways(leaving)).toEqual([])
  leaving.connection.leave()
  await leaving.send(frame([frameTypes.ping, 1], 0, 'are you?'))
  expect(await goAways(leaving)).toHaveLength(1)
  await leaving.send(acknowledgement)
  expect((await goAways(leaving)).slice(1)).toEqual(['0000000100000000'])
})

test('a connection that is not read of goes on reading once it has ended', async () => {
  const full = await openFull()
  full.connection.leave()
  await full.lookAt(1001)
  expect(full.duplex.isPaused()).toBe(false)
})

test('a client may send 256 KiB after the end of its connection, and is cut beyond', async () => {
  const broken = open()
  await broken.send(opening, frame([frameTypes.push, 4], 1))
  for (let chunks = 0; chunks < 4; chunks += 1) await broken.send(Buffer.alloc(64 * 1024))
  expect(isDestroyed(broken)).toBe(false)
  await broken.send(Buffer.alloc(1))
  expect(isDestroyed(broken)).toBe(true)
})

test('a connection that broke the protocol is cut after 1 s', async () => {
  const broken = open()
  await broken.send(opening, frame([frameTypes.push, 4], 1))
  await broken.lookAt(1000)
  expect(isDestroyed(broken)).toBe(false)
  await broken.lookAt(1001)
  expect(isDestroyed(broken)).toBe(true)
})

test('a call that was answered early is reset after 1 s', async () => {
  const early = open()
  await early.send(opening, headers(1))
  early.begun[0]?.refuseHttp(415)
  const resets = async () => (await early.sent()).filter(([type]) => type === frameTypes.reset)
  await early.lookAt(999)
  expect(await resets()).toEqual([])
  await early.lookAt(1000)
  expect(await resets()).toEqual([[frameTypes.reset, 0, '00000000']])
})

test('a call is over at its deadline', async () => {
  const late = open()
  await late.send(opening, headers(1))
  const [stream] = late.begun
  if (stream === undefined) throw new Error('no call was begun')
  stream.untilMs = 1000 + 50
  await late.lookAt(49)
  expect(stream.isOver).toBe(false)
  await late.lookAt(50)
  expect(stream.isOver).toBe(true)
})
