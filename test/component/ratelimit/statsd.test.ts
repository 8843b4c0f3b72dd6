// The statsd sink with a TCP server that listens, is unavailable, restarts or reads nothing: it
// sends counters as differences, loses none, and its memory is bounded.
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { RuleStats } from '../../../src/limiter/stats/rule-stats.ts'
import { readStats } from '../../../src/limiter/stats/render-stats.ts'
import { type StatsdSink, type StatsReading, startStatsd } from '../../../src/telemetry/statsd.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

/** A statsd server that sums the received counts. */
async function listenStatsd(port: number) {
  const sockets = new Set<Socket>()
  const lines: string[] = []
  const totals = new Map<string, number>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    let rest = ''
    socket.setEncoding('utf8')
    socket.on('error', () => undefined) // the client resets the connection
    socket.on('data', (chunk: string) => {
      const complete = (rest + chunk).split('\n')
      rest = complete.pop() ?? ''
      for (const line of complete) {
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

type Statsd = Awaited<ReturnType<typeof listenStatsd>>

let counters: Map<string, number>
let logged: string[]
let reads: number
let sinks: StatsdSink[]
let servers: Statsd[]
beforeEach(() => {
  counters = new Map([['hits', 0]])
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
  const server = await listenStatsd(port ?? (await freePort()))
  servers.push(server)
  return server
}

function start(
  port: number,
  given: { flushMs?: number; tags?: ReadonlyMap<string, string>; read?: () => StatsReading } = {},
) {
  const { flushMs = 20, tags = new Map<string, string>() } = given
  const read = given.read ?? (() => ({ counters, timings: [] }))
  const log = (_: unknown, message: string) => {
    logged.push(message)
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

test('the sink sends changed counters as differences', async () => {
  const server = await listen()
  counters.set('idle', 0)
  add(3)
  start(server.port)
  await waitFor('the first difference', () => server.total('hits') === 3)
  add(5)
  await waitFor('the second difference', () => server.total('hits') === 8)
  expect(server.lines.filter((line) => line.startsWith('hits'))).toEqual(['hits:3|c', 'hits:5|c'])
  expect(server.lines.join()).not.toContain('idle')
  expect(server.connections()).toBe(1)
  expect(logged).toEqual([])
})

test('the sink sends the statistics of the limiter with the names of the reference', async () => {
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
  const suffix = '.__env=prod.__zone=a_b'
  await waitFor('the statistics', () =>
    server.lines.includes(`ratelimit.service.rate_limit.d.k_v.over_limit${suffix}:1|c`),
  )
  expect(server.lines).toContain(`ratelimit.service.rate_limit.d.k_v.total_hits${suffix}:2|c`)
  const times = server.lines.filter((line) => line.includes('response_time'))
  const line = `ratelimit_server.ShouldRateLimit.response_time${suffix}:1.5|ms|@0.512000`
  await waitFor('all times', () => server.lines.filter((sent) => sent === line).length === 512)
  expect(new Set(times)).toEqual(new Set([line]))
})

test('the sink sends all counts once its server is available, and logs one outage', async () => {
  const server = await listen()
  const { port } = server
  await server.close()
  add(4)
  start(port)
  await waitFor('the outage in the log', () => logged.length === 1)
  add(6)
  const restarted = await listen(port)
  await waitFor('the complete count', () => restarted.total('hits') === 10)
  expect(logged).toEqual(['statsd unavailable', 'statsd available'])
})

test('the sink sends the counts of the outage to a server that restarted', async () => {
  const server = await listen()
  add(1)
  start(server.port)
  await waitFor('the first', () => server.total('hits') === 1)
  await server.close()
  servers = []
  // Data written before the close is detected is lost: statsd has no acknowledgements.
  await waitFor('the outage in the log', () => logged.length === 1)
  add(5)
  const restarted = await listen(server.port)
  await waitFor('the rest', () => restarted.total('hits') >= 5)
  expect(restarted.total('hits')).toBe(5)
  expect(logged).toEqual(['statsd unavailable', 'statsd available'])
})

test('the sink disconnects from a server that reads nothing, and queues no batches', async () => {
  const server = await listen()
  server.pause()
  // Far more than the socket buffers of the system.
  for (let i = 0; i < 20_000; i++) counters.set(`${'x'.repeat(900)}${i}`, 1)
  const sink = start(server.port)
  await waitFor('the disconnect', () => logged.length === 1)
  expect(reads).toBeLessThanOrEqual(2) // no second batch while one is in flight
  await withinDeadline('the stop', sink.stop(), 5000)
  sinks = []
})

test('the stop of the sink sends the remaining counts, even if no flush is due', async () => {
  const server = await listen()
  const sink = start(server.port, { flushMs: 3_600_000 })
  await waitFor('the first reading', () => reads === 1)
  add(9)
  await sink.stop()
  sinks = []
  await waitFor('the last count', () => server.total('hits') === 9)
})

test('the stop of the sink does not wait for an unavailable server', async () => {
  const server = await listen()
  await server.close()
  servers = []
  const sink = start(server.port, { flushMs: 3_600_000 })
  await waitFor('the outage in the log', () => logged.length === 1)
  await withinDeadline('the stop', sink.stop(), 5000)
  sinks = []
  expect(logged).toHaveLength(1)
})

test('the sink logs a host that does not resolve as an outage', async () => {
  const sink = startStatsd({
    host: 'no-such-host.invalid',
    port: 8125,
    flushMs: 20,
    tags: new Map(),
    read: () => ({ counters, timings: [] }),
    log: {
      info: () => undefined,
      warn: (_: unknown, message: string) => logged.push(message),
    } as never,
  })
  sinks.push(sink)
  await waitFor('the outage in the log', () => logged.length === 1)
})
