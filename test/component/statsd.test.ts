// The statsd sink against a real TCP server that listens, is absent, goes, comes back or takes
// nothing: counts arrive as differences, none is lost, and nothing piles up.
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { RuleStats } from '../../src/limiter/stats/rule-stats.ts'
import { readStats } from '../../src/limiter/stats/render-stats.ts'
import { type StatsdSink, type StatsReading, startStatsd } from '../../src/telemetry/statsd.ts'
import { inTime, waitFor } from './wait-for.ts'

/** A statsd server that adds up what it is told. */
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
    /** From now on it takes nothing. */
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

test('counters come as differences, gauges as they are, what did not move not at all', async () => {
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

test('the limiter’s own statistics come by the reference’s names, with the tags', async () => {
  const server = await listen()
  const stats = new RuleStats({ nearLimitRatio: 0.8 })
  const hit = { hits: 2, admitted: false, remaining: 0, over: 1, capacity: 5 }
  stats.countersOf('d.k_v').record({ ...hit, isShadow: false, isFromDenyCache: false })
  for (let i = 0; i < 1000; i++) stats.noteCall(1.5)
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

test('a server that is absent at the start is told all later, and logged once', async () => {
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

test('a server that goes and comes back is told what came meanwhile', async () => {
  const server = await listen()
  add(1)
  start(server.port)
  await waitFor('the first', () => server.total('hits') === 1)
  await server.close()
  servers = []
  // What was written before the end was known is lost: statsd acknowledges nothing.
  await waitFor('the outage in the log', () => logged.length === 1)
  add(5)
  const back = await listen(server.port)
  await waitFor('the rest', () => back.total('hits') >= 5)
  expect(back.total('hits')).toBe(5)
  expect(logged).toEqual(['statsd unavailable', 'statsd available'])
})

test('a server that takes nothing is not waited for, and nothing piles up', async () => {
  const server = await listen()
  server.pause()
  // Far more than the system's buffers hold.
  for (let i = 0; i < 20_000; i++) counters.set(`${'x'.repeat(900)}${i}`, 1)
  const sink = start(server.port)
  await waitFor('its being cut off', () => logged.length === 1)
  const readsThen = reads
  expect(readsThen).toBeLessThanOrEqual(2) // no second batch is made while one is under way
  await inTime('its end', sink.stop(), 5000)
  sinks = []
})

test('the end tells what is left, though the next message would be an hour away', async () => {
  const server = await listen()
  const sink = start(server.port, { flushMs: 3_600_000 })
  await waitFor('the first reading', () => reads === 1)
  add(9)
  await sink.stop()
  sinks = []
  await waitFor('the last count', () => server.total('hits') === 9)
})

test('the end does not wait for a server that is absent', async () => {
  const server = await listen()
  await server.close()
  servers = []
  const sink = start(server.port, { flushMs: 3_600_000 })
  await waitFor('the outage in the log', () => logged.length === 1)
  await inTime('the end', sink.stop(), 5000)
  sinks = []
  expect(logged).toHaveLength(1)
})

test('a host that no name server knows is an outage and no crash', async () => {
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
