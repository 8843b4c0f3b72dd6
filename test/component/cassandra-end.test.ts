// What a client of Cassandra leaves behind once it is closed: no connection, and nothing that makes
// one, whatever happened to its cluster before, or happens just then.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { openCassandra } from '../../src/stores/cassandra/client.ts'
import { createCassandraLinkStore } from '../../src/stores/cassandra/link-store.ts'
import { BACK_OFF } from '../../src/stores/cassandra/driver-options.ts'
import { type OpenedCassandra, openNode, quiet, SETUP_MS_MAX } from '../contract/open-cassandra.ts'
import { type FaultProxy, startFaultProxy } from '../parts/fault-proxy.ts'
import { createRandom, newSeed } from './random.ts'
import { waitFor } from './wait-for.ts'

jest.setTimeout(SETUP_MS_MAX)

const CLIENTS = 8
const LOSSES = 6
/** How long the node is away, and there, at most; a client looks for it again after 250 ms. */
const SPELL_MS_MAX = 600

let node: OpenedCassandra
const proxies: FaultProxy[] = []

beforeAll(async () => {
  node = await openNode('ends')
})
afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy.close()
})
afterAll(() => node.close())

/** A way of its own to the node. */
async function openWay(at?: { host: string; port: number }): Promise<FaultProxy> {
  const to = { host: node.cluster.node(0).address, port: node.cluster.port }
  const proxy = await startFaultProxy({ to, ...(at !== undefined && { at }) })
  proxies.push(proxy)
  return proxy
}

/** Opens a client that knows the node by these ways alone. */
function openBy(
  ways: readonly FaultProxy[],
  options: { localDc?: string; onFault?: () => void } = {},
) {
  const { localDc, onFault } = options
  return openCassandra({
    config: {
      ...node.config,
      CASSANDRA_CONTACT_POINTS: ways.map(({ host }) => host),
      CASSANDRA_PORT: ways[0]?.port ?? 0,
      ...(localDc !== undefined && { CASSANDRA_LOCAL_DC: localDc }),
    },
    metrics: createMetrics(),
    log: quiet,
    ...(onFault !== undefined && { onFault }),
  })
}

const countConnections = () => proxies.reduce((sum, proxy) => sum + proxy.connections(), 0)

/** Waits until nothing is connected, and for as long as the driver waits to connect again. */
async function expectNothingLeft(): Promise<void> {
  await waitFor('all connections to end', () => countConnections() === 0)
  const endMs = performance.now() + BACK_OFF.maxMs + SPELL_MS_MAX
  while (performance.now() < endMs) {
    expect(countConnections()).toBe(0)
    await sleep(20)
  }
}

test('closed while it finds its node again', async () => {
  const way = await openWay()
  const cassandra = openBy([way])
  await cassandra.ready
  way.blackHole()
  way.cut()
  await waitFor('the loss to be seen', () => !cassandra.isUp())
  await waitFor('an attempt to connect', () => way.connections() > 0)
  await cassandra.close()
  await way.heal()
  await expectNothingLeft()
})

test('closed before it could stay at any of its contact points', async () => {
  const way = await openWay()
  const other = await openWay({ host: '127.0.0.2', port: way.port })
  let faults = 0
  const cassandra = openBy([way, other], { localDc: 'nowhere', onFault: () => faults++ })
  await waitFor('attempts to connect', () => faults > 2)
  await cassandra.close()
  await expectNothingLeft()
})

test('closed after its node was lost and found, at any moment', async () => {
  const seed = newSeed()
  process.stdout.write(`ends of clients, seed ${String(seed)}\n`)
  const random = createRandom(seed)
  const ends = Array.from({ length: CLIENTS }, async () => {
    const way = await openWay()
    const cassandra = openBy([way])
    await cassandra.ready
    await createCassandraLinkStore(cassandra).find('none') // a statement to prepare again each time
    for (let i = 0; i < LOSSES; i++) {
      await way.refuse()
      await sleep(random.int(SPELL_MS_MAX))
      await way.heal()
      await sleep(random.int(SPELL_MS_MAX))
    }
    await cassandra.close()
  })
  await Promise.all(ends)
  await expectNothingLeft()
})
