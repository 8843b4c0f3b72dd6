// Clients of a listener with a short stall timeout: a client that reads nothing is disconnected, a
// client that reads slowly gets the whole response.
import { connect } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import express from 'express'
import { type Listener, listen } from '../../../src/http/serve.ts'
import { warn } from '../../kit/warn.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const STALL_MS_MAX = 500
const CHUNK_BYTES = 64 * 1024
/** More than the socket buffers of both sides hold. */
const RESPONSE_BYTES = 32 * 1024 * 1024
const CHUNKS = RESPONSE_BYTES / CHUNK_BYTES
const READ_BYTES_PER_MS = 6 * 1024
const TEST_MS_MAX = 180_000
const READ_MS_MAX = 50_000

let listener: Listener
/** Whether the response is in flight, by path. */
const isSending = new Map<string, boolean>()

beforeAll(async () => {
  listener = await listen({ port: 0, setting: 'PORT', onError: warn, stallMsMax: STALL_MS_MAX })
  const app = express()
  app.use((req, res) => {
    isSending.set(req.path, true)
    res.once('close', () => isSending.set(req.path, false))
    res.setHeader('Content-Length', RESPONSE_BYTES)
    const chunks = Array.from({ length: CHUNKS }, () => Buffer.alloc(CHUNK_BYTES))
    pipeline(Readable.from(chunks), res, () => undefined) // `close` reports its completion
  })
  listener.attach({ baseUrl: 'http://localhost', app })
})

afterAll(() => listener.drain())

/** Sends a request; the socket is paused. */
function sendRequest(path: string) {
  const socket = connect({ port: listener.port, host: '127.0.0.1' }).pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  return socket
}

test('a client that reads nothing is disconnected, not before the stall timeout', async () => {
  const startedMs = performance.now()
  const socket = sendRequest('/nothing')
  await waitFor('the request', () => isSending.has('/nothing'))
  await waitFor('the close', () => isSending.get('/nothing') === false)
  expect(performance.now() - startedMs).toBeGreaterThan(STALL_MS_MAX)
  socket.destroy()
})

/**
 * Reads the response with a pause of `pauseMs` after each read; `hasFailed` resolves to whether the
 * connection failed.
 */
function readSlowly(path: string, pauseMs: (received: number) => number) {
  const socket = sendRequest(path)
  let received = 0
  const hasFailed = new Promise<boolean>((resolve) => socket.once('close', resolve))
  socket.on('data', ({ length }: Buffer) => {
    received += length
    socket.pause()
    setTimeout(() => socket.resume(), pauseMs(received))
  })
  socket.resume()
  return { hasFailed, received: () => received }
}

test(
  'a client that reads slowly gets the whole response',
  async () => {
    const startedMs = performance.now()
    // In total this takes far longer than the stall timeout. The system reports the socket as
    // writable only when much of its buffer is free, so a busy machine must not slow the client.
    const { hasFailed, received } = readSlowly('/slow', (bytes) =>
      Math.max(0, startedMs + bytes / READ_BYTES_PER_MS - performance.now()),
    )
    expect(await withinDeadline('the response', hasFailed, READ_MS_MAX)).toBe(false)
    expect(performance.now() - startedMs).toBeGreaterThan(4 * STALL_MS_MAX)
    expect(received()).toBeGreaterThan(RESPONSE_BYTES)
  },
  TEST_MS_MAX,
)

test(
  'a client gets the whole response although the process is blocked meanwhile',
  async () => {
    let isBlocked = true
    const { hasFailed, received } = readSlowly('/blocked', () => (isBlocked ? 10 : 0))
    await waitFor('some bytes', () => received() > 0)
    for (let times = 0; times < 6; times++) {
      const untilMs = performance.now() + 1.4 * STALL_MS_MAX
      while (performance.now() < untilMs); // blocks the event loop
      await sleep(30)
    }
    isBlocked = false
    expect(await withinDeadline('the response', hasFailed, READ_MS_MAX)).toBe(false)
    expect(received()).toBeGreaterThan(RESPONSE_BYTES)
  },
  TEST_MS_MAX,
)
