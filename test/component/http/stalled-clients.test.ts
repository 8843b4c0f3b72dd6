// Clients that do not read their responses, against a listener with a short stall timeout: a client
// that reads nothing is disconnected, a slow reader gets the whole response.
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
/** More than the system's buffers of both ends hold. */
const ANSWER_BYTES = 32 * 1024 * 1024
const CHUNKS = ANSWER_BYTES / CHUNK_BYTES

let listener: Listener
/** By path, whether its response is in flight. */
const isSending = new Map<string, boolean>()

beforeAll(async () => {
  listener = await listen({ port: 0, setting: 'PORT', onError: warn, stallMsMax: STALL_MS_MAX })
  const app = express()
  app.use((req, res) => {
    isSending.set(req.path, true)
    res.once('close', () => isSending.set(req.path, false))
    res.setHeader('Content-Length', ANSWER_BYTES)
    const chunks = Array.from({ length: CHUNKS }, () => Buffer.alloc(CHUNK_BYTES))
    pipeline(Readable.from(chunks), res, () => undefined) // its end is seen by `close`
  })
  listener.attach({ baseUrl: 'http://localhost', app })
})

afterAll(() => listener.drain())

function ask(path: string) {
  const socket = connect({ port: listener.port, host: '127.0.0.1' }).pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  return socket
}

test('a client that reads nothing is disconnected, not before the stall timeout', async () => {
  const begunMs = performance.now()
  const socket = ask('/nothing')
  await waitFor('the request', () => isSending.has('/nothing'))
  await waitFor('the cut', () => isSending.get('/nothing') === false)
  expect(performance.now() - begunMs).toBeGreaterThan(STALL_MS_MAX)
  socket.destroy()
})

/** Takes some bytes of the answer at a time; `ended` gives whether the connection broke. */
function takeLittle(path: string) {
  const socket = ask(path)
  let received = 0
  const ended = new Promise<boolean>((resolve) => socket.once('close', resolve))
  socket.on('data', ({ length }: Buffer) => {
    received += length
    // In all it takes far longer than a client may take nothing. The system tells the writer of
    // room only where there is much of it, so a client must not be too slow.
    socket.pause()
    setTimeout(() => socket.resume(), 10)
  })
  socket.resume()
  return { ended, received: () => received }
}

test('a client that reads some bytes at a time gets the whole response', async () => {
  const begunMs = performance.now()
  const { ended, received } = takeLittle('/little')
  expect(await withinDeadline('the end', ended)).toBe(false)
  expect(performance.now() - begunMs).toBeGreaterThan(4 * STALL_MS_MAX)
  expect(received()).toBeGreaterThan(ANSWER_BYTES)
})

test('also while this process is blocked, so that no client can read', async () => {
  const { ended, received } = takeLittle('/held')
  await waitFor('some bytes', () => received() > 0)
  for (let times = 0; times < 6; times++) {
    const untilMs = performance.now() + 1.4 * STALL_MS_MAX
    while (performance.now() < untilMs); // nothing else is done meanwhile
    await sleep(30)
  }
  expect(await withinDeadline('the end', ended)).toBe(false)
  expect(received()).toBeGreaterThan(ANSWER_BYTES)
})
