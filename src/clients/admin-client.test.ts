// The errors of the client if the admin API accepts a request, but does not complete the response,
// or redirects it.
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, jest, test } from '@jest/globals'
import * as z from 'zod'
import { callAdminApi, callAdminApiOnce } from './admin-client.ts'

let server: Server
afterEach(() => {
  jest.restoreAllMocks()
  server.closeAllConnections()
  server.close()
})

const listeners: Record<string, RequestListener> = {
  'no response': () => undefined,
  'half a response': (_req, res) => {
    res.writeHead(200)
    res.write('{')
  },
}

test.each(Object.entries(listeners))('after %s, the timeout is reported', async (_, listener) => {
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  const delays = jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(100))
  server = createServer(listener)
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const path = '/admin/links/a'
  const call = (method: string, send = callAdminApi) =>
    send({ url, token: undefined }, { method, path }, z.unknown())
  const message = `the admin API at ${url} did not respond within 15 s`
  await expect(call('GET')).rejects.toThrow(new Error(message))
  const hint = '; the change may have been applied'
  await expect(call('DELETE')).rejects.toThrow(new Error(`${message}${hint}`))
  await expect(call('GET', callAdminApiOnce)).rejects.toThrow(new Error(message))
  await expect(call('DELETE', callAdminApiOnce)).rejects.toThrow(
    new Error(`${message}${hint}: retry the command`),
  )
  expect(delays.mock.calls).toEqual(Array.from({ length: 4 }, () => [15_000]))
})

test('the client does not follow a redirect, and reports where it leads', async () => {
  const paths: unknown[] = []
  server = createServer((req, res) => {
    paths.push(req.url)
    res.writeHead(307, { Location: '/elsewhere' }).end()
  })
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const call = (setting?: string) =>
    callAdminApi(
      { url, token: 'secret', ...(setting !== undefined && { setting }) },
      { method: 'POST', path: '/a', json: {} },
      z.unknown(),
    )
  const fault = 'POST /a returned 307, but redirects to "/elsewhere" are not followed'
  await expect(call()).rejects.toThrow(new Error(`${fault}: check ADMIN_URL, ${url}`))
  await expect(call('API_URL')).rejects.toThrow(new Error(`${fault}: check API_URL, ${url}`))
  expect(paths).toEqual(['/a', '/a'])
})
