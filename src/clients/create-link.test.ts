// The retries of a create whose first attempt has no response, against a real server.
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, jest, test } from '@jest/globals'
import { createLink } from './create-link.ts'

let server: Server
afterEach(() => {
  jest.restoreAllMocks()
  server.closeAllConnections()
  server.close()
})

/** Starts the server; `fail` receives the first request, and the others create the link. */
async function startServer(fail: RequestListener) {
  const keys: unknown[] = []
  server = createServer((req, res) => {
    keys.push(req.headers['idempotency-key'])
    req.resume().on('end', () => {
      if (keys.length === 1) fail(req, res)
      else res.writeHead(201).end('{"short_url":"http://a/b","expires_at":null}')
    })
  })
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
  return { keys, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** If the failure is `a timeout`, the first response times out after 200 ms. */
function timeOutQuickly(failure: string) {
  if (failure !== 'a timeout') return
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  jest.spyOn(AbortSignal, 'timeout').mockImplementationOnce(() => timeout(200))
}

function create(url: string, signal = new AbortController().signal) {
  const causes: string[] = []
  const onRetry = ({ message }: Error) => {
    causes.push(message)
  }
  const link = { longUrl: 'https://example.com/', alias: undefined, ttlDays: undefined }
  return { causes, created: createLink({ url, apiKey: undefined, signal, onRetry }, link) }
}

const unreachable = /^cannot reach the API at .*: check API_URL$/
const failures: Record<string, [fail: RequestListener, cause: RegExp]> = {
  'a reset': [(req) => req.socket.resetAndDestroy(), unreachable],
  'a closed connection': [(req) => req.socket.destroy(), unreachable],
  'half a response': [
    (req, res) => {
      res.writeHead(201, { 'Content-Length': '99' })
      res.write('{', () => req.socket.destroy())
    },
    unreachable,
  ],
  'a timeout': [() => undefined, /did not respond within 15 s$/],
}

test.each(Object.entries(failures))(
  'after %s, the create is retried with the same Idempotency-Key',
  async (failure, [fail, cause]) => {
    const { keys, url } = await startServer(fail)
    timeOutQuickly(failure)
    const { causes, created } = create(url)
    expect(await created).toEqual({ short_url: 'http://a/b', expires_at: null })
    expect([keys.length, keys[0], typeof keys[0]]).toEqual([2, keys[1], 'string'])
    expect(causes).toEqual([expect.stringMatching(cause)])
  },
)

test.each(Object.entries(failures))(
  'if no retry follows %s, the error reports the unknown outcome',
  async (failure, [fail]) => {
    const { keys, url } = await startServer(fail)
    timeOutQuickly(failure)
    const { created } = create(url, AbortSignal.abort())
    await expect(created).rejects.toThrow(/; the link may have been created$/)
    expect(keys).toHaveLength(1)
  },
)

test('a service that cannot be reached is reported immediately', async () => {
  const { keys, url } = await startServer(() => undefined)
  await new Promise((resolve) => server.close(resolve))
  const { causes, created } = create(url)
  await expect(created).rejects.toThrow(unreachable)
  expect([causes, keys]).toEqual([[], []])
})
