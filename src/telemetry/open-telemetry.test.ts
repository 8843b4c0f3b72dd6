// Which requests are traced: those with the sampled flag in their traceparent, and, of those
// without a traceparent, the ones that the operator's sampler selects.
import { expect, test } from '@jest/globals'
import { createSpans } from './open-telemetry.ts'

const trace = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}`
const spans = createSpans({ usesSampler: false })

test.each([`${trace}-01`, `${trace}-03`, `${trace}-ff`])('%s is sampled', (traceparent) => {
  expect(spans.shouldTrace(traceparent)).toBe(true)
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
])('%p is not sampled', (traceparent) => {
  expect(spans.shouldTrace(traceparent)).toBe(false)
})

test('the sampler decides only on requests without a traceparent', () => {
  const sampling = createSpans({ usesSampler: true })
  expect(sampling.shouldTrace(undefined)).toBe(true)
  expect(sampling.shouldTrace(`${trace}-00`)).toBe(false)
})

test('without an SDK nothing is recorded', () => {
  const start = { name: 'GET', attributes: {} }
  expect(spans.startServerSpan({ traceparent: `${trace}-01` }, start)).toBeUndefined()
  expect(spans.startClientSpan(() => start)).toBeUndefined()
  expect(spans.currentIds()).toBeUndefined()
})
