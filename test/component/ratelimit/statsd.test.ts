// The statsd sink against a TCP server that listens, is unavailable, restarts or reads nothing:
// counts arrive as differences, none is lost, and memory is bounded.
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { RuleStats } from '../../../src/limiter/stats/rule-stats.ts'
import { readStats } from '../../../src/limiter/stats/render-stats.ts'
import { type StatsdSink, type StatsReading, startStatsd } from '../../../src/telemetry/statsd.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

/** A statsd server that sums the counts that it receives. */
async function listening(port = 0) {
  const sockets = new Set<Socket>()
  const lines: string[] = []
  const totals = new Map<string, number>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    let rest = ''
    socket.setEncoding('utf8')
    socket.on('error', () => undefined) // a client that was cut off
    socket.on('data', (text: string) => {
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      for (const line of parts) {
        lines.push(line)
        const [name = '', value = ''] = line.split(/:|\|/)
        if (line.includes('|c')) totals.set(name, (totals.get(name) ?? 0) + Number(value))
      }
    })
    if (isPaused) socket.pause()
  })
  let isPaused = false
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port: (server.address() as { port: number }).port,
    lines,
    total: (name: string) => totals.get(name) ?? 0,
    connections: () => sockets.size,
    /** Stops reading from its connections. */
    pause() {
      isPaused = true
      for (const socket of sockets) socket.pause()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Statsd = Awaited<ReturnType<typeof listening>>

let counters: Map<string, number>
let gauges: Map<string, number>
let logged: string[]
let reads: number
let sinks: StatsdSink[]
let servers: Statsd[]
beforeEach(() => {
  counters = new Map([['hits', 0]])
  gauges = new Map()
  logged = []
  reads = 0
  sinks = []
  servers = []
})
afterEach(async () => {
  for (const sink of sinks) await sink.stop()
  for (const server of servers) await server.close()
})

async function listen(port?: number): Promise<Statsd> {
  const server = await listening(port)
  servers.push(server)
  return server
}

function start(
  port: number,
  given: { flushMs?: number; tags?: ReadonlyMap<string, string>; read?: () => StatsReading } = {},
) {
  const { flushMs = 20, tags = new Map<string, string>() } = given
  const read = given.read ?? (() => ({ counters, gauges, timings: [] }))
  const log = (_: unknown, text: string) => {
    logged.push(text)
  }
  const sink = startStatsd({
    host: '127.0.0.1',
    port,
    flushMs,
    tags,
    read: () => {
      reads++
      return read()
    },
    log: { info: log, warn: log } as never,
  })
  sinks.push(sink)
  return sink
}

const add = (n: number) => counters.set('hits', (counters.get('hits') ?? 0) + n)

test('sends counters as differences, gauges as values, unchanged counters not', async () => {
  const server = await listen()
  gauges.set('entries', 7)
  counters.set('idle', 0)
  add(3)
  start(server.port)
  await waitFor('the first difference', () => server.total('hits') === 3)
  add(5)
  await waitFor('the second difference', () => server.total('hits') === 8)
  expect(server.lines.filter((line) => line.startsWith('hits'))).toEqual(['hits:3|c', 'hits:5|c'])
  expect(server.lines).toContain('entries:7|g')
  expect(server.lines.join()).not.toContain('idle')
  expect(server.connections()).toBe(1)
  expect(logged).toEqual([])
})

test('the statistics of the limiter have the names of the reference, with the tags', async () => {
  const server = await listen()
  const stats = new RuleStats({ nearLimitRatio: 0.8 })
  const hit = { hits: 2, admitted: false, remaining: 0, over: 1, capacity: 5 }
  stats.countersOf('d.k_v').record({ ...hit, isShadow: false, isFromDenyCache: false })
  for (let i = 0; i < 1000; i++) stats.countCall(1.5)
  const tags = new Map([
    ['zone', 'a.b'],
    ['env', 'prod'],
    ['none', ''],
  ])
  start(server.port, { tags, read: () => readStats(stats) })
  const ends = '.__env=prod.__zone=a_b'
  await waitFor('the statistics', () =>
    server.lines.includes(`ratelimit.service.rate_limit.d.k_v.over_limit${ends}:1|c`),
  )
  expect(server.lines).toContain(`ratelimit.service.rate_limit.d.k_v.total_hits${ends}:2|c`)
  const times = server.lines.filter((line) => line.includes('response_time'))
  const line = `ratelimit_server.ShouldRateLimit.response_time${ends}:1.5|ms|@0.512000`
  await waitFor('all times', () => server.lines.filter((sent) => sent === line).length === 512)
  expect(new Set(times)).toEqual(new Set([line]))
})

test('a server that is unavailable at first receives all counts later; logged once', async () => {
  const server = await listen()
  const { port } = server
  await server.close()
  add(4)
  start(port)
  await waitFor('the outage in the log', () => logged.length === 1)
  add(6)
  const back = await listen(port)
  await waitFor('the whole count', () => back.total('hits') === 10)
  expect(logged).toEqual(['statsd unavailable', 'statsd available'])
})

test('a server that restarts receives the counts of the meantime', async () => {
  const server = await listen()
  add(1)
  start(server.port)
  await waitFor('the first', () => server.total('hits') === 1)
  await server.close()
  servers = []
  // Data written before the close is detected is lost: statsd has no acknowledgements.
  await waitFor('the outage in the log', () => logged.length === 1)
  add(5)
  const back = await listen(server.port)
  await waitFor('the rest', () => back.total('hits') >= 5)
  expect(back.total('hits')).toBe(5)
  expect(logged).toEqual(['statsd unavailable', 'statsd available'])
})

test('a server that reads nothing is disconnected, and no batches queue up', async () => {
  const server = await listen()
  server.pause()
  // Far more than the system's buffers hold.
  for (let i = 0; i < 20_000; i++) counters.set(`${'x'.repeat(900)}${i}`, 1)
  const sink = start(server.port)
  await waitFor('its being cut off', () => logged.length === 1)
  const readsThen = reads
  expect(readsThen).toBeLessThanOrEqual(2) // no second batch while one is in flight
  await withinDeadline('its end', sink.stop(), 5000)
  sinks = []
})

test('the stop sends the remaining counts, even if the next flush is due in an hour', async () => {
  const server = await listen()
  const sink = start(server.port, { flushMs: 3_600_000 })
  await waitFor('the first reading', () => reads === 1)
  add(9)
  await sink.stop()
  sinks = []
  await waitFor('the last count', () => server.total('hits') === 9)
})

test('the stop does not wait for an unavailable server', async () => {
  const server = await listen()
  await server.close()
  servers = []
  const sink = start(server.port, { flushMs: 3_600_000 })
  await waitFor('the outage in the log', () => logged.length === 1)
  await withinDeadline('the end', sink.stop(), 5000)
  sinks = []
  expect(logged).toHaveLength(1)
})

test('a host that does not resolve is an outage, not a crash', async () => {
  const sink = startStatsd({
    host: 'no-such-host.invalid',
    port: 8125,
    flushMs: 20,
    tags: new Map(),
    read: () => ({ counters, gauges, timings: [] }),
    log: { info: () => undefined, warn: (_: unknown, text: string) => logged.push(text) } as never,
  })
  sinks.push(sink)
  await waitFor('the outage in the log', () => logged.length === 1)
})
