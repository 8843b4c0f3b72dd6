// The OpenMetrics page, compared with that of the Prometheus format.
import { expect, test } from '@jest/globals'
import { Counter, Histogram } from 'prom-client'
import { createMetrics } from './metrics.ts'
import { openMetricsOf } from './open-metrics.ts'
import { installSpans, type Spans } from './spans.ts'

const TRACE = 'ab'.repeat(16)

/** The lines with values. */
function seriesOf(page: string): string[] {
  return page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

/** The metrics of a process, with a value of each type. */
function someMetrics() {
  const metrics = createMetrics()
  metrics.creates.inc({ result: 'created' })
  metrics.poolLevel.set({ pool: 'a' }, 7)
  metrics.requestSeconds.labels('code', '302').observe(0.02)
  const labels = { domain: 'd', key1: 'a "b"\n\\', key2: '', rule: '' }
  metrics.ruleTotalHits.collectFrom(() => [{ labels, value: 3 }])
  const registers = [metrics.registry]
  const help = 'One of prom-client’s own.'
  new Counter({ name: 'a_total', help, labelNames: ['kind'], registers }).inc({ kind: 'x' })
  new Histogram({ name: 'b_seconds', help, labelNames: ['kind'], registers }).observe(
    { kind: 'x' },
    2,
  )
  return metrics
}

test('series are the same as in the Prometheus format, which is unchanged', async () => {
  const { registry } = someMetrics()
  const before = await registry.metrics()
  const page = await openMetricsOf(registry)
  expect(seriesOf(page)).toEqual(seriesOf(before))
  expect(seriesOf(page).length).toBeGreaterThan(50)
  expect(await registry.metrics()).toBe(before)
})

test('a counter’s family lacks _total; a counter without it has an unknown type', async () => {
  const page = await openMetricsOf(someMetrics().registry)
  expect(page).toContain(
    '\n# TYPE curtail_creates counter\ncurtail_creates_total{result="created"} 1\n',
  )
  expect(page).toContain('\n# TYPE ratelimit_service_rate_limit_total_hits unknown\n')
  expect(page).not.toContain('\n\n')
  expect(page.endsWith('\n# EOF\n')).toBe(true)
})

test('the exemplar of a bucket is its last observation within a trace', async () => {
  let traceId: string | undefined
  const currentIds = () => traceId && { trace_id: traceId, span_id: 'cd'.repeat(8) }
  installSpans({ currentIds } as Partial<Spans> as Spans)
  try {
    const { registry, requestSeconds } = createMetrics()
    const series = requestSeconds.labels('code', '302')
    const startMs = Date.now()
    for (const [id, value] of [
      ['1'.repeat(32), 0.02],
      [TRACE, 0.011],
      [undefined, 0.012],
      [TRACE, 9],
    ] as const) {
      traceId = id
      series.observe(value)
    }
    const exemplarLines = (await openMetricsOf(registry))
      .split('\n')
      .filter((line) => line.includes(' # '))
    const found = exemplarLines.map((line) =>
      / (\d+) # \{trace_id="(.+)"\} (\S+) (\S+)$/.exec(line)?.slice(1),
    )
    expect(exemplarLines.map((line) => /le="([^"]+)"/.exec(line)?.[1])).toEqual(['0.025', '+Inf'])
    expect(found).toEqual([
      ['3', TRACE, '0.011', expect.any(String)],
      ['4', TRACE, '9', expect.any(String)],
    ])
    expect(Number(found[0]?.[3]) * 1000).toBeGreaterThanOrEqual(startMs)
    expect(Number(found[0]?.[3]) * 1000).toBeLessThanOrEqual(Date.now())
    expect(await registry.metrics()).not.toContain('trace_id')
  } finally {
    installSpans(undefined)
  }
})
