// How long a call may take, whatever deadline its client sets: on a connection without a socket,
// whose client acknowledges PINGs.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { frame, headersOn, opening } from '../../test/kit/ratelimit/grpc-frames.ts'
import { openPipe, type Pipe, settle } from '../../test/kit/ratelimit/http2-connection.ts'
import { createHttp2Transport } from './http2-transport.ts'
import { frameTypes } from './http2/frames.ts'

const [END_STREAM, ACK] = [1, 1]
const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const HEALTH = '/grpc.health.v1.Health'
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'

let pipe: Pipe
let startMs: number
let acknowledged: number

beforeEach(async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] })
  pipe = openPipe()
  acknowledged = 0
  const transport = createHttp2Transport({
    decide: () => new Promise(() => undefined),
    onCall: () => undefined,
    onDefect: (error) => {
      throw error
    },
    ...{ ageMsMax: 0, graceMs: 0 },
  })
  transport.serve(pipe.duplex)
  pipe.duplex.push(opening)
  await settle()
  startMs = performance.now()
})
afterEach(() => {
  pipe.duplex.destroy()
  jest.useRealTimers()
})

const literal = (name: string, value: string) =>
  Buffer.concat(
    ['\0', ...[name, value].flatMap((one) => [String.fromCharCode(one.length), one])].map((bytes) =>
      Buffer.from(bytes),
    ),
  )

/** Starts a call on stream 1, and sends a message; a unary request is then complete. */
async function call(path: string, timeout: string | undefined) {
  const isUnary = path === METHOD
  const fields = [
    ...[literal(':method', 'POST'), literal(':scheme', 'http'), literal(':path', path)],
    literal('content-type', 'application/grpc'),
    ...(timeout === undefined ? [] : [literal('grpc-timeout', timeout)]),
  ]
  const request = isUnary ? Buffer.from([0, 0, 0, 0, 2, 10, 0]) : Buffer.alloc(5)
  const flags = isUnary ? END_STREAM : 0
  pipe.duplex.push(headersOn(1, 4, Buffer.concat(fields)))
  pipe.duplex.push(frame({ type: frameTypes.data, flags }, 1, request))
  await settle()
}

/** Passes time in steps until `ms` after the start; acknowledges PINGs. */
async function passUntil(ms: number) {
  const leftMs = () => startMs + ms - performance.now()
  while (leftMs() > 0 && !isComplete()) {
    await jest.advanceTimersByTimeAsync(Math.min(10_000, leftMs()))
    await settle()
    const pings = pipe.frames().filter(({ type, flags }) => type === frameTypes.ping && flags === 0)
    for (const { payload } of pings.slice(acknowledged))
      pipe.duplex.push(frame({ type: frameTypes.ping, flags: ACK }, 0, payload))
    acknowledged = pings.length
    await settle()
  }
}
const isComplete = () =>
  pipe
    .frames()
    .some(
      ({ stream, type, flags }) =>
        stream === 1 && (type === frameTypes.rstStream || (flags & END_STREAM) === END_STREAM),
    )

test.each([
  { name: 'a unary call', path: METHOD, timeout: undefined, msMax: 10_000 },
  { name: 'a unary call with a longer deadline', path: METHOD, timeout: '1H', msMax: 10_000 },
  { name: 'a unary call with a shorter deadline', path: METHOD, timeout: '300m', msMax: 300 },
  { name: 'a reflection call', path: REFLECTION, timeout: '99999999H', msMax: 60_000 },
  { name: 'a short reflection call', path: REFLECTION, timeout: '2S', msMax: 2000 },
  { name: 'a watch', path: `${HEALTH}/Watch`, timeout: '99999999H', msMax: 3_600_000 },
])('$name is complete after $msMax ms', async ({ path, timeout, msMax }) => {
  await call(path, timeout)
  await passUntil(msMax - 100)
  expect([isComplete(), pipe.duplex.destroyed]).toEqual([false, false])
  await passUntil(msMax + 200)
  expect([isComplete(), pipe.duplex.destroyed]).toEqual([true, false])
})
