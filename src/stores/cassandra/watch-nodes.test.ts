// The state of the store while nodes go down and come up, on a fake of the driver's client: what is
// reported, logged and counted. test/component/stores uses real nodes.
import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import type { Client } from 'cassandra-driver'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { pause } from '../../resilience/deadline.ts'
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts'
import { type MajorityWatch, PROBE_EVERY_MS } from './majority.ts'
import { type NodeWatch, watchNodes } from './watch-nodes.ts'

interface FakeHost {
  readonly address: string
  readonly datacenter: string
  up: boolean
  readonly isUp: () => boolean
}

const hostOf = (address: string, datacenter = 'dc1'): FakeHost => {
  const host = { address, datacenter, up: true, isUp: () => host.up }
  return host
}
const client = Object.assign(new EventEmitter(), {
  hosts: { values: () => hosts },
  getState: () => ({
    getConnectedHosts: () => hosts.filter((host) => host.up),
    getOpenConnections: () => 2,
    getInFlightQueries: () => 5,
  }),
})

let hosts: FakeHost[]
let metrics: Metrics
let watch: NodeWatch
let log: unknown[]
let states: string[]
let probes: number
let losses: number

const logAs =
  (level: string) =>
  (...args: unknown[]) =>
    log.push([level, ...args])

function open(probe: ((majority: MajorityWatch) => void) | undefined) {
  watch = watchNodes({
    ...{ client: client as unknown as Client, localDc: 'dc1', metrics, probe },
    log: { info: logAs('info'), warn: logAs('warn') } as never,
    onMajorityLost: () => losses++,
    onState: (state) => states.push(state),
  })
}

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'performance'] })
  hosts = [hostOf('a'), hostOf('b'), hostOf('c'), hostOf('d', 'dc2')]
  metrics = createMetrics()
  log = []
  states = []
  probes = 0
  losses = 0
  open(() => {
    probes++
  })
})
afterEach(async () => {
  await watch.stop()
  jest.useRealTimers()
})

const turn = () => new Promise((resolve) => setImmediate(resolve))
const noteSuccess = () => {
  watch.majority.noteSuccess(performance.now())
}
/** Starts the watch with a majority. */
const start = () => {
  watch.start()
  noteSuccess()
  log = []
}
const setUp = async (at: number, up: boolean) => {
  const host = hosts[at]
  if (host !== undefined) host.up = up
  client.emit(up ? 'hostUp' : 'hostDown', host)
  await turn()
  await turn()
}
const valueOf = async (gauge: Metrics['cassandraMajority']) =>
  (await gauge.get()).values.map(({ value }) => value)
const changes = async () =>
  (await metrics.cassandraNodeChanges.get()).values.map(({ labels, value }) => [
    labels.state,
    value,
  ])

test('before the first connection, nothing is reported', async () => {
  await setUp(0, false)
  jest.advanceTimersByTime(5000)
  expect([watch.isConnected(), watch.state(), log, probes]).toEqual([false, undefined, [], 0])
})

test('after the first connection, the store is up once a probe succeeds', async () => {
  watch.start()
  const addresses = ['a', 'b', 'c']
  expect(log).toEqual([['info', { addresses, up: 3, nodes: 3 }, 'connected to Cassandra']])
  expect([watch.isConnected(), watch.state(), states, probes]).toEqual([true, undefined, [], 1])
  noteSuccess()
  noteSuccess()
  expect([watch.state(), states, log.slice(1)]).toEqual([
    ...['up', ['up'], [['info', 'Cassandra available']]],
  ])
  expect(await valueOf(metrics.cassandraMajority)).toEqual([1])
})

test('outside a keyspace, a majority counts as present without a probe', async () => {
  await watch.stop()
  open(undefined)
  watch.start()
  await pause(PROBE_EVERY_MS + 100)
  await turn()
  jest.advanceTimersByTime(6000) // idle
  expect([states, losses]).toEqual([['up'], 0])
})

test('a node of this data center that goes down and comes up is logged and counted', async () => {
  start()
  const before = await changes()
  await setUp(3, false) // in another data center
  expect([log, await changes()]).toEqual([[], before])
  await setUp(1, false)
  expect(log).toEqual([['warn', { address: 'b', up: 2, nodes: 3 }, 'Cassandra node down']])
  await setUp(1, true)
  expect(log.slice(1)).toEqual([['info', { address: 'b', up: 3, nodes: 3 }, 'Cassandra node up']])
  expect(await changes()).toEqual([
    ['up', 4],
    ['down', 1],
  ])
  expect([watch.state(), states]).toEqual(['up', ['up']])
})

test('after a change of the nodes, probes decide whether a majority responds', async () => {
  start()
  await setUp(1, false)
  expect(watch.state()).toBe('up')
  await waitFor('the loss of the majority', () => losses > 0)
  expect([watch.state(), states, losses]).toEqual(['no-majority', ['up', 'no-majority'], 1])
  expect(log.at(-1)).toEqual([
    ...['warn', 'Cassandra unavailable: no majority of replicas responds, probing'],
  ])
  expect(await valueOf(metrics.cassandraMajority)).toEqual([0])
  noteSuccess()
  expect(states).toEqual(['up', 'no-majority', 'up'])
})

test('without a node the store is down, and stays so until a probe succeeds', async () => {
  start()
  for (const at of [0, 1, 2]) await setUp(at, false)
  expect([watch.state(), states]).toEqual(['down', ['up', 'down']])
  expect(log.at(-1)).toEqual(['warn', 'Cassandra unavailable: no node is up'])
  noteSuccess() // of a probe that was sent before
  await setUp(0, true)
  expect([watch.state(), watch.majority.isPresent()]).toEqual(['down', undefined])
  noteSuccess()
  expect(states).toEqual(['up', 'down', 'up'])
})

test('nodes that are down at the first connection are not reported as a change', () => {
  for (const host of hosts) host.up = false
  watch.start()
  expect([watch.state(), states]).toEqual([undefined, []])
})

test('each second the nodes and connections are read, also without an event', async () => {
  start()
  const readAll = async () =>
    Promise.all(
      [metrics.cassandraHosts, metrics.cassandraConnections, metrics.cassandraInFlight].map(
        async (gauge) => (await gauge.get()).values[0]?.value,
      ),
    )
  expect(await readAll()).toEqual([4, 8, 20])
  const [, second] = hosts
  if (second !== undefined) second.up = false
  jest.advanceTimersByTime(999)
  expect([log.length, await readAll()]).toEqual([0, [4, 8, 20]])
  jest.advanceTimersByTime(1)
  expect([log.length, await readAll()]).toEqual([1, [3, 6, 15]])
})

test('after five seconds without a success, a probe is sent', async () => {
  start()
  await pause(PROBE_EVERY_MS + 100) // until the first probe is complete
  await turn()
  probes = 0
  jest.advanceTimersByTime(5000)
  expect(probes).toBe(0) // the first of these seconds had a success
  jest.advanceTimersByTime(1000)
  expect(probes).toBe(1)
})

test('after a stop, nothing is reported', async () => {
  start()
  await watch.stop()
  for (const at of [0, 1, 2]) await setUp(at, false)
  jest.advanceTimersByTime(5000)
  expect([watch.state(), watch.isConnected(), states, log]).toEqual(['down', false, ['up'], []])
  expect([client.eventNames(), jest.getTimerCount()]).toEqual([[], 0])
})
