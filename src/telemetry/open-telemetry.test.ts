// Which requests are traced: those whose traceparent says that they are sampled, and of those
// without one what the operator's sampler says.
import { expect, test } from '@jest/globals'
import { createSpans } from './open-telemetry.ts'

const trace = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}`
const spans = createSpans({ isSamplerAsked: false })

test.each([`${trace}-01`, `${trace}-03`, `${trace}-ff`])('%s is sampled', (traceparent) => {
  expect(spans.wants(traceparent)).toBe(true)
})

test.each([
  undefined,
  '',
  'nonsense',
  trace,
  `${trace}-`,
  `${trace}-00`,
  `${trace}-02`,
  `${trace}-zz`,
  [`${trace}-01`, `${trace}-01`],
])('%p is not', (traceparent) => {
  expect(spans.wants(traceparent)).toBe(false)
})

test('a sampler is asked of requests that name no trace, and of no other', () => {
  const asking = createSpans({ isSamplerAsked: true })
  expect(asking.wants(undefined)).toBe(true)
  expect(asking.wants(`${trace}-00`)).toBe(false)
})

test('without an SDK nothing is recorded', () => {
  const start = { name: 'GET', facts: {} }
  expect(spans.serve({ traceparent: `${trace}-01` }, start)).toBeUndefined()
  expect(spans.ask(() => start)).toBeUndefined()
  expect(spans.idsNow()).toBeUndefined()
})
