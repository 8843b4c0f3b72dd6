// Which format a scraper gets for its Accept header.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createMetrics } from '../telemetry/metrics.ts'
import { bareApp } from './bare-app.ts'
import { sendMetrics } from './send-metrics.ts'

const openMetrics = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
const plainText = 'text/plain; version=0.0.4; charset=utf-8'

let server: Server
let url: string

beforeAll(async () => {
  const app = bareApp()
  app.get('/metrics', sendMetrics(createMetrics().registry))
  server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/metrics`
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})

test.each([
  ['no preference', '*/*', plainText],
  ['a browser', 'text/html,application/xhtml+xml,*/*;q=0.8', plainText],
  ['text only', 'text/plain', plainText],
  ['an unsupported type', 'image/png', plainText],
  ['OpenMetrics rejected by q=0', 'application/openmetrics-text;q=0,text/plain', plainText],
  ['text preferred', 'application/openmetrics-text;q=0.5,text/plain;version=0.0.4', plainText],
  [
    'Prometheus 2',
    'application/openmetrics-text;version=1.0.0,' +
      'application/openmetrics-text;version=0.0.1;q=0.75,' +
      'text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    openMetrics,
  ],
  [
    'Prometheus 3',
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,' +
      'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,*/*;q=0.2',
    openMetrics,
  ],
])('the format for %s', async (_, accept, type) => {
  const response = await fetch(url, { headers: { Accept: accept } })
  const page = await response.text()
  expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
  expect(response.headers.get('vary')).toBe('Accept')
  expect(page.endsWith('# EOF\n')).toBe(type === openMetrics)
  expect(page).toContain('curtail_pool_level_codes')
})
