// Every path that the create app serves is reserved: no alias can hide a page.
import { expect, test } from '@jest/globals'
import { createMemoryReportStore } from '../../../test/kit/stores/memory-report-store.ts'
import { noClientKeys } from '../../create/client-keys.ts'
import { isReserved, servedSegments } from '../../links/reserved.ts'
import { createLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { noLimits } from '../limit-requests.ts'
import { createCreateApp } from './app.ts'
import { createBodySchema } from './create-request.ts'

test('the first segments of its paths are exactly the reserved words that the app serves', () => {
  const app = createCreateApp({
    baseUrl: 'https://curtail.example',
    schema: createBodySchema(new Set()),
    create: () => Promise.reject(new Error('no request is sent')),
    isBlocked: () => false,
    ownHosts: new Set(),
    reports: createMemoryReportStore(),
    securityContacts: [],
    nowMs: Date.now,
    keys: noClientKeys,
    limits: noLimits,
    metrics: createMetrics(),
    log: createLog({ role: 'test', level: 'silent' }),
  })
  const paths = app.router.stack.flatMap(({ route }) => (route === undefined ? [] : [route.path]))
  const segments = new Set(paths.map((path) => path.split('/')[1] ?? ''))
  segments.delete('') // the home page
  segments.delete(':code.svg') // no alias has a dot
  expect([...segments].sort()).toEqual([...servedSegments].sort())
  expect([...segments].filter((segment) => !isReserved(segment))).toEqual([])
})
