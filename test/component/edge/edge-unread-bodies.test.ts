// Bodies that the edge does not forward: Envoy responds without waiting for them, and soon closes
// the connection, regardless of how much the client still sends.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import { type Edge, type Pod, startEdge, startPod } from '../../kit/edge/edge.ts'
import { sendUntilClosed } from '../../kit/http/endless-body.ts'
import { openConnection } from '../../kit/http/raw-http.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 400_000 // includes the download of dependencies
/** `delayed_close_timeout`: the time for which Envoy discards bytes after its response. */
const DISCARD_MS_MAX = 1000
/** More than the client can send within the deadline of the test. */
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
  ['a create with a huge Content-Length', 'POST /v1/urls', 'Content-Length: 10000000000'],
  ['endless chunks', 'POST /v1/urls', 'Transfer-Encoding: chunked'],
  ['a method that is not allowed', 'PUT /abc', 'Content-Length: 10000000000'],
])(
  'the edge responds to %s with 413 immediately, and closes the connection',
  async (_, line, header) => {
    const connection = await openConnection(edge.port)
    const json = 'Content-Type: application/json'
    connection.send([`${line} HTTP/1.1`, 'Host: cur.tl', json, header, '', ''].join('\r\n'))
    if (header.includes('chunked')) connection.send('fffffff\r\n')
    const response = connection.nextResponse()
    const sentBytes = sendUntilClosed(connection, BYTES_MAX)
    expect((await response).status).toBe(413)
    expect(await withinDeadline('the close', sentBytes, 5 * DISCARD_MS_MAX)).toBeLessThan(BYTES_MAX)
    expect(pod.requests).toEqual([])
  },
)
