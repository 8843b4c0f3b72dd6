// Tests the process metrics: which there are, and that they do not wake an idle process.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { TICK_MS } from './loop-lag.ts'
import { collectProcessMetrics, createMetrics } from './metrics.ts'

const metricsPath = fileURLToPath(new URL('metrics.ts', import.meta.url))
/** Without its own clock, an idle process hardly wakes; prom-client's adds 100 per second. */
const WAKES_PER_SECOND_MAX = 1000 / TICK_MS + 50

/** Prints how often an idle process with process metrics wakes in a second. */
const countWakes = `
  const { collectProcessMetrics, createMetrics } = await import(process.argv[1])
  collectProcessMetrics(createMetrics())
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  await sleep(1000) // garbage collections after the start
  const before = process.resourceUsage().voluntaryContextSwitches
  await sleep(1000)
  console.log(process.resourceUsage().voluntaryContextSwitches - before)
`

test('has the lag of the event loop as a histogram, and no quantiles of prom-client', async () => {
  const metrics = createMetrics()
  collectProcessMetrics(metrics)
  const names = (await metrics.registry.getMetricsAsJSON()).map(({ name }) => name)
  const ofLag = names.filter((name) => name.includes('loop'))
  expect(ofLag).toEqual(['curtail_event_loop_lag_seconds', 'nodejs_eventloop_lag_seconds'])
  expect(names).toContain('process_cpu_seconds_total')
})

test('does not wake an idle process except for its own clock', async () => {
  const args = ['--input-type=module', '--eval', countWakes, metricsPath]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 })
  expect(Number(stdout)).toBeGreaterThan(0)
  expect(Number(stdout)).toBeLessThan(WAKES_PER_SECOND_MAX)
})
