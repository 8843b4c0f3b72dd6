// Clients that stall at every point of a request, on every port: the process still stops within its
// deadline after either signal.
import { afterEach, expect, test } from '@jest/globals'
import { openConnection, type RawConnection, requestBytes } from '../../kit/http/raw-http.ts'
import type { RoleProcess } from '../../kit/processes/role-process.ts'
import { startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

/** Five times the deadline of the stop, after which the process kills itself: no exit with 0. */
const STOP_MS_MAX = 5 * 7000
const TEST_MS_MAX = 120_000

const opened: RawConnection[] = []
afterEach(() => {
  for (const connection of opened.splice(0)) connection.close()
})

const post = 'POST /v1/urls HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const stalls = {
  'no byte': '',
  'half a request line': 'GET /ab',
  'half a header': 'GET / HTTP/1.1\r\nHos',
  'half a body': `${post}Content-Length: 100\r\n\r\n{`,
  'half a chunk': `${post}Transfer-Encoding: chunked\r\n\r\n64\r\n{`,
  'a body that was rejected': `${post}Content-Length: 1000000\r\n\r\n{`,
  'no request at all': 'nonsense\r\n\r\n',
}

/** Opens connections to a port that serves `path`; each stalls at another point. */
async function stallAt(port: number, path: string): Promise<void> {
  const open = async () => {
    const connection = await openConnection(port)
    opened.push(connection)
    return connection
  }
  for (const bytes of Object.values(stalls)) (await open()).send(bytes)
  const idle = await open()
  await idle.exchange({ path })
  const unread = await open()
  unread.socket.pause() // the responses exceed the socket buffers
  unread.send(Buffer.concat(Array.from({ length: 2000 }, () => requestBytes({ path }))))
}

/** Sends the signal; returns the exit code. */
async function stopBy(signal: NodeJS.Signals, process: RoleProcess): Promise<unknown> {
  process.child.kill(signal)
  return withinDeadline(`the exit after ${signal}`, process.exited, STOP_MS_MAX)
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  'standalone stops within the deadline on %s',
  async (signal) => {
    const service = await startStandalone()
    await stallAt(service.port, '/docs')
    await stallAt(Number(new URL(service.adminUrl).port), '/metrics')
    try {
      expect(await stopBy(signal, service)).toBe(0)
    } finally {
      await service.stop()
    }
  },
  TEST_MS_MAX,
)
