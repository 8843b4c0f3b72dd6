// The counters and histograms render exactly as prom-client's own do.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Counter, Histogram, Registry } from 'prom-client'
import { LabelledCounter, LabelledHistogram } from './labelled-metrics.ts'

const NAME = 'a_metric'
const HELP = 'The help.'
const labelNames = ['tier', 'outcome'] as const
const buckets = [0.001, 0.1, 1]
const labels = fc.record({
  tier: fc.constantFrom('memory', 'store'),
  outcome: fc.constantFrom('hit', 'a "quoted" \\ one', 'two\nlines'),
})

/** The sorted lines of the page. */
async function pageOf(registry: Registry): Promise<string[]> {
  return (await registry.metrics()).split('\n').sort()
}

test('a counter renders as in prom-client', async () => {
  const steps = fc.array(fc.tuple(labels, fc.integer({ min: 0, max: 9 }), fc.boolean()))
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const [ours, theirs] = [new Registry(), new Registry()]
      const counter = new LabelledCounter({ name: NAME, help: HELP, labelNames, registry: ours })
      const peer = new Counter({ name: NAME, help: HELP, labelNames, registers: [theirs] })
      for (const [by, count, isCached] of given) {
        if (isCached) counter.labels(by.tier, by.outcome).inc(count)
        else counter.inc(by, count)
        peer.inc(by, count)
      }
      expect(await pageOf(ours)).toEqual(await pageOf(theirs))
    }),
  )
})

test('a histogram renders values on, between and above its bounds as in prom-client', async () => {
  const values = fc.oneof(
    fc.constantFrom(0, 0.001, 0.1, 1, 7),
    fc.double({ min: 0, max: 2, noNaN: true }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(labels, values)), async (given) => {
      const [ours, theirs] = [new Registry(), new Registry()]
      const shape = { name: NAME, help: HELP, buckets, labelNames }
      const histogram = new LabelledHistogram({ ...shape, registry: ours })
      const peer = new Histogram({ ...shape, registers: [theirs] })
      for (const [by, value] of given) {
        histogram.labels(by.tier, by.outcome).observe(value)
        peer.observe(by, value)
      }
      expect(await pageOf(ours)).toEqual(await pageOf(theirs))
    }),
  )
})

test('a metric without labels is rendered at zero from the start', async () => {
  const registry = new Registry()
  new LabelledCounter({ name: NAME, help: HELP, registry })
  expect(await registry.metrics()).toContain(`${NAME} 0`)
})
