// A collected counter renders the current series of its source on each scrape.
import { expect, test } from '@jest/globals'
import { Registry } from 'prom-client'
import { CollectedCounter } from './collected-counter.ts'

test('the registry renders current series, and no deleted one', async () => {
  const registry = new Registry()
  const counter = new CollectedCounter({
    name: 'hits',
    help: 'Hits.',
    labelNames: ['rule'],
    registry,
  })
  expect(await registry.metrics()).toBe('# HELP hits Hits.\n# TYPE hits counter\n')
  const totals = new Map([['a"b\n', 2]])
  counter.collectFrom(() => [...totals].map(([rule, value]) => ({ labels: { rule }, value })))
  expect(await registry.metrics()).toContain('hits{rule="a\\"b\\n"} 2')
  totals.clear()
  totals.set('c', 5)
  const page = await registry.metrics()
  expect(page).toContain('hits{rule="c"} 5')
  expect(page).not.toContain('a\\"b')
})
