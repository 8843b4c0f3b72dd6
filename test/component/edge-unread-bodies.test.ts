// Bodies that the edge does not forward: Envoy responds without waiting for them, and closes the
// connection soon, however much its client goes on to send.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { freePort } from '../parts/free-ports.ts'
import { type Edge, type Pod, startEdge, startPod } from './edge.ts'
import { pour } from './pour.ts'
import { openConnection } from './raw-http.ts'
import { inTime } from './wait-for.ts'

const SETUP_MS_MAX = 400_000 // parts may have to be fetched
/** `delayed_close_timeout`: how long Envoy discards what comes after its response. */
const DISCARD_MS_MAX = 1000
/** More than this client sends in the time that the test allows. */
const BYTES_MAX = 256 * 1024 * 1024

let pod: Pod
let edge: Edge

beforeAll(async () => {
  pod = await startPod()
  edge = await startEdge({ podPort: pod.port, limiterPorts: [await freePort()] })
}, SETUP_MS_MAX)

afterAll(async () => {
  await edge.stop()
  pod.close()
})

test.each([
  ['a create of a huge length', 'POST /v1/urls', 'Content-Length: 10000000000'],
  ['chunks without end', 'POST /v1/urls', 'Transfer-Encoding: chunked'],
  ['a method that is not served', 'PUT /abc', 'Content-Length: 10000000000'],
])('%s: 413 at once, and the connection closes whatever is sent', async (_, line, header) => {
  const connection = await openConnection(edge.port)
  const json = 'Content-Type: application/json'
  connection.send([`${line} HTTP/1.1`, 'Host: cur.tl', json, header, '', ''].join('\r\n'))
  if (header.includes('chunked')) connection.send('fffffff\r\n')
  const answered = connection.answer()
  const poured = pour(connection, BYTES_MAX)
  expect((await answered).status).toBe(413)
  expect(await inTime('the end', poured, 5 * DISCARD_MS_MAX)).toBeLessThan(BYTES_MAX)
  expect(pod.seen).toEqual([])
})
