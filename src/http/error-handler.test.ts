// An error after the start of the response: logged, and the connection closes.
import { expect, test } from '@jest/globals'
import { bareApp } from './bare-app.ts'
import { errorHandler } from './error-handler.ts'
import { listen } from './serve.ts'

test('an error after the response has started is logged, and closes the connection', async () => {
  const logged: unknown[] = []
  const log = { error: (fields: unknown) => logged.push(fields) } as never
  const baseUrl = ''
  const app = bareApp()
  app.get('/', (_req, res) => {
    res.write('half')
    throw new Error('a defect')
  })
  app.use(errorHandler({ baseUrl, log }))
  const http = await listen({
    port: 0,
    host: '127.0.0.1',
    setting: 'PORT',
    onError: () => undefined,
  })
  http.attach({ baseUrl, app })
  const headers = { 'X-Request-Id': 'r-1' }
  const reading = fetch(`http://127.0.0.1:${String(http.port)}/`, { headers })
  await expect(reading.then((response) => response.text())).rejects.toThrow(/.+/)
  await http.drain(0)
  expect(logged).toEqual([{ err: new Error('a defect'), requestId: 'r-1' }])
})
