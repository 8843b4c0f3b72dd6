// Mutated sequences of valid HTTP/2 frames for a gRPC listener: each connection must close within
// the deadline, and must receive only valid HTTP/2.
import { connect } from 'node:net'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import type { Frame } from '../../../loadtest/bench/http2-frame.ts'
import { callHeaders, emptyCall, frame, framesOf, opening } from './grpc-frames.ts'
import type { Random } from '../random.ts'
import { withinDeadline } from '../wait-for.ts'

const CLOSE_MS_MAX = 10_000
const FRAMES_MAX = 12
const MUTATIONS_MAX = 4
/** The share of unmutated sequences, whose calls must all get a response. */
const VALID = 0.15
const PREFACE_BYTES = 24
const HEADER_BYTES = 9
/** The highest code of RFC 9113 §7. */
const ERROR_MAX = 13

/** The result of one sequence. */
export interface FuzzResult {
  readonly isValid: boolean
  /** The number of completed calls. */
  readonly responses: number
  /** The error code of a received GOAWAY. */
  readonly code: number | undefined
}

/** Sends one sequence to a port of loopback. Throws if the server sends invalid frames. */
export async function fuzzConnection(port: number, random: Random): Promise<FuzzResult> {
  const isValid = random.chance(VALID)
  const { frames, calls } = validFrames(random)
  if (!isValid) for (let i = random.int(MUTATIONS_MAX); i >= 0; i -= 1) mutate(random, frames)
  const settings = opening.subarray(PREFACE_BYTES)
  const preface = isValid || !random.chance(0.02) ? opening : settings
  const sent = Buffer.concat([preface, ...frames])
  try {
    const received = await exchange(port, split(random, sent), isValid ? calls : Infinity)
    return { isValid, ...checkReceived(received, isValid ? calls : undefined) }
  } catch (error) {
    throw new Error(`${String(error)} after ${sent.toString('hex')}`, { cause: error })
  }
}

function validFrames(random: Random): { frames: Buffer[]; calls: number } {
  const frames: Buffer[] = []
  let calls = 0
  for (let i = random.int(FRAMES_MAX); i >= 0; i -= 1) {
    const kind = random.int(6)
    if (kind < 3) frames.push(...callFrames(random, 2 * calls++ + 1))
    else frames.push(controlFrame(random, kind))
  }
  return { frames, calls }
}

function callFrames(random: Random, stream: number): Buffer[] {
  const pad = random.chance(0.3) ? random.int(20) : 0
  const padded = (bytes: Buffer) =>
    pad === 0 ? bytes : Buffer.concat([Buffer.from([pad]), bytes, Buffer.alloc(pad)])
  const padFlag = pad === 0 ? 0 : 8
  const hasTrailers = random.chance(0.2)
  const splitAt = random.chance(0.3) ? random.int(callHeaders.length) : undefined
  const first = { type: frameTypes.headers, flags: padFlag | (splitAt === undefined ? 4 : 0) }
  const rest = splitAt === undefined ? [] : [callHeaders.subarray(splitAt)]
  return [
    frame(first, stream, padded(callHeaders.subarray(0, splitAt))),
    ...rest.map((block) => frame({ type: frameTypes.continuation, flags: 4 }, stream, block)),
    frame(
      { type: frameTypes.data, flags: padFlag | (hasTrailers ? 0 : 1) },
      stream,
      padded(emptyCall),
    ),
    ...(hasTrailers
      ? [frame({ type: frameTypes.headers, flags: 5 }, stream, Buffer.from('\0\x01x\x01y'))]
      : []),
  ]
}

function controlFrame(random: Random, kind: number): Buffer {
  if (kind === 3) return frame({ type: frameTypes.ping }, 0, bytesOf(random, 8))
  if (kind === 4) {
    const setting = Buffer.from([0, 1 + random.int(2) * 2, 0, 0, random.int(255), random.int(255)])
    return frame({ type: frameTypes.settings }, 0, setting)
  }
  const more = Buffer.from([0, 0, random.int(255), 1 + random.int(255)])
  return frame({ type: frameTypes.windowUpdate }, 0, more)
}

const bytesOf = (random: Random, length: number) =>
  Buffer.from(Array.from({ length }, () => random.int(256)))

/** Changes, adds or removes one frame. */
function mutate(random: Random, frames: Buffer[]): void {
  const at = random.int(frames.length)
  const found = frames[at]
  // A frame with a truncated header is not mutated further.
  if (found === undefined || found.length < HEADER_BYTES) return
  const one = Buffer.from(found)
  const streams = [0, 1, 2, 3, 5, 2 ** 31 - 1]
  const changes: readonly (() => readonly Buffer[])[] = [
    () => (one.writeUInt8(random.int(12), 3), [one]),
    () => (one.writeUInt8((one[4] ?? 0) ^ (1 << random.int(8)), 4), [one]),
    () => (one.writeUInt32BE(random.pick(streams), 5), [one]),
    () => (one.writeUIntBE(random.pick([0, 1, 5, 16_384, 16_385, 2 ** 24 - 1]), 0, 3), [one]),
    () => (one.writeUInt8(random.int(256), random.int(one.length)), [one]),
    () => [one.subarray(0, random.int(one.length))],
    () => [one, one],
    () => [],
    () => [one, frames[random.int(frames.length)] ?? one],
    () => {
      const type = random.int(11)
      const payload = bytesOf(random, random.pick([0, 4, 5, 8, 36, random.int(300)]))
      return [one, frame({ type, flags: random.int(256) }, random.pick(streams), payload)]
    },
    () => {
      const block = bytesOf(random, 1 + random.int(60))
      const stream = 2 * random.int(20) + 1
      return [one, frame({ type: frameTypes.headers, flags: 4 | random.int(2) }, stream, block)]
    },
  ]
  frames.splice(at, 1, ...random.pick(changes)())
}

function split(random: Random, bytes: Buffer): readonly Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const end = random.chance(0.5) ? bytes.length : at + 1 + random.int(HEADER_BYTES * 4)
    chunks.push(bytes.subarray(at, end))
    at = end
  }
  return chunks
}

const endsCall = ({ type, flags }: Frame) => type === frameTypes.headers && (flags & 1) === 1

/**
 * Sends the chunks, waits until `calls` calls have completed, and closes; returns the received
 * bytes.
 */
async function exchange(port: number, sent: readonly Buffer[], calls: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const closed = new Promise<void>((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined) // 'close' follows
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (framesOf(Buffer.concat(chunks)).filter(endsCall).length >= calls) socket.end()
  })
  for (const chunk of sent) {
    if (!socket.writable) break
    socket.write(chunk)
    if (sent.length > 1) await new Promise((resolve) => setImmediate(resolve))
  }
  if (!Number.isFinite(calls)) socket.end()
  try {
    await withinDeadline('a connection to close', closed, CLOSE_MS_MAX)
  } finally {
    socket.destroy()
  }
  return Buffer.concat(chunks)
}

function checkReceived(bytes: Buffer, calls: number | undefined): Omit<FuzzResult, 'isValid'> {
  const frames = framesOf(bytes)
  const completed = new Set<number>()
  let code: number | undefined
  for (const one of frames) {
    const { type, stream, payload } = one
    if (type === frameTypes.goaway) code = payload.readUInt32BE(4)
    const error = type === frameTypes.rstStream ? payload.readUInt32BE() : (code ?? 0)
    if (error > ERROR_MAX) throw new Error(`unknown error code ${String(error)}`)
    const isOfCall = type === frameTypes.headers || type === frameTypes.data
    if (isOfCall && (completed.has(stream) || stream % 2 === 0)) {
      throw new Error(`unexpected frame of type ${String(type)} on stream ${String(stream)}`)
    }
    if (endsCall(one)) completed.add(stream)
  }
  if (code === 2) throw new Error('the server reported INTERNAL_ERROR')
  if (calls !== undefined && (completed.size < calls || code !== undefined)) {
    const counts = `${String(completed.size)} of ${String(calls)} calls completed`
    throw new Error(`${counts}, GOAWAY ${String(code)}`)
  }
  return { responses: completed.size, code }
}
