// A closed Cassandra client leaves no connection open and opens none, regardless of faults of the
// cluster before or during the close.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals'
import { StoreError } from '../../../src/resilience/store-error.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { openCassandra } from '../../../src/stores/cassandra/client.ts'
import { createCassandraLinkStore } from '../../../src/stores/cassandra/link-store.ts'
import { BACK_OFF } from '../../../src/stores/cassandra/driver-options.ts'
import {
  type OpenedCassandra,
  openNode,
  quiet,
  SETUP_MS_MAX,
} from '../../contract/open-cassandra.ts'
import { sampleLink } from '../../contract/sample-link.ts'
import { type FaultProxy, startFaultProxy } from '../../kit/fault-proxy.ts'
import { createRandom, newSeed } from '../../kit/random.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { durationWithoutPauses } from '../../kit/watch-pauses.ts'

jest.setTimeout(SETUP_MS_MAX)

const CLIENTS = 8
const OUTAGES = 6
/** CLOSE_MS_MAX of client.ts, with a margin; the driver rejects a read after 5.5 s. */
const CLOSE_MS_MAX = 4000
/** The longest time that the node stays down, or up; a client reconnects after 250 ms. */
const PHASE_MS_MAX = 600

let node: OpenedCassandra
const proxies: FaultProxy[] = []

beforeAll(async () => {
  node = await openNode('closes')
})
afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy.close()
})
afterAll(() => node.close())

/** Opens a proxy to the node. */
async function openProxy(at?: { host: string; port: number }): Promise<FaultProxy> {
  const to = { host: node.cluster.node(0).address, port: node.cluster.port }
  const proxy = await startFaultProxy({ to, ...(at !== undefined && { at }) })
  proxies.push(proxy)
  return proxy
}

/** Opens a client whose contact points are these proxies. */
function openThrough(
  contactPoints: readonly FaultProxy[],
  options: { localDc?: string; onFault?: () => void } = {},
) {
  const { localDc, onFault } = options
  return openCassandra({
    config: {
      ...node.config,
      CASSANDRA_CONTACT_POINTS: contactPoints.map(({ host }) => host),
      CASSANDRA_PORT: contactPoints[0]?.port ?? 0,
      ...(localDc !== undefined && { CASSANDRA_LOCAL_DC: localDc }),
    },
    metrics: createMetrics(),
    log: quiet,
    ...(onFault !== undefined && { onFault }),
  })
}

const isUnavailable = (error: unknown) => {
  if (!(error instanceof StoreError)) throw error
  return false
}

const countConnections = () => proxies.reduce((sum, proxy) => sum + proxy.connections(), 0)

/** Waits until all connections are closed; verifies that none opens within a reconnect delay. */
async function expectNoConnections(): Promise<void> {
  await waitFor('all connections to be closed', () => countConnections() === 0)
  const endMs = performance.now() + BACK_OFF.maxMs + PHASE_MS_MAX
  while (performance.now() < endMs) {
    expect(countConnections()).toBe(0)
    await sleep(20)
  }
}

test('a closed client completes the requests in flight and rejects later ones', async () => {
  const cassandra = openCassandra({ config: node.config, metrics: createMetrics(), log: quiet })
  const links = createCassandraLinkStore(cassandra)
  expect(await cassandra.ready).toBe('up')
  const claims = Array.from({ length: 50 }, () => sampleLink())
  const writers = claims.map((link) => links.insertIfAbsent(link))
  await cassandra.close()
  expect(await Promise.all(writers)).toEqual(claims.map(({ writerId }) => writerId))
  await expect(links.find('any')).rejects.toMatchObject({ outcome: 'not-done' })
})

test('a client that is closed before it could connect reports `closed`', async () => {
  const config = { ...node.config, CASSANDRA_PORT: 1 }
  const cassandra = openCassandra({ config, metrics: createMetrics(), log: quiet })
  await cassandra.close()
  expect(await cassandra.ready).toBe('closed')
})

test('a client of a node that hangs closes within 2 s', async () => {
  const proxy = await openProxy()
  const cassandra = openThrough([proxy])
  const links = createCassandraLinkStore(cassandra)
  await cassandra.ready
  await waitFor('a response', () => links.find('none').then(() => true, isUnavailable))
  proxy.blackHole()
  await expect(links.find('none')).rejects.toThrow(StoreError)
  expect(await durationWithoutPauses(() => cassandra.close())).toBeLessThan(CLOSE_MS_MAX)
  await proxy.heal()
  await expectNoConnections()
})

test('a client that is closed while it reconnects leaves no connection', async () => {
  const proxy = await openProxy()
  const cassandra = openThrough([proxy])
  await cassandra.ready
  proxy.blackHole()
  proxy.resetConnections()
  await waitFor('the client to report the node as down', () => !cassandra.isUp())
  await waitFor('a connection attempt', () => proxy.connections() > 0)
  await cassandra.close()
  await proxy.heal()
  await expectNoConnections()
})

test('a client that is closed before it has used a node leaves no connection', async () => {
  const proxy = await openProxy()
  const other = await openProxy({ host: '127.0.0.2', port: proxy.port })
  let faults = 0
  const cassandra = openThrough([proxy, other], { localDc: 'nowhere', onFault: () => faults++ })
  await waitFor('connection attempts', () => faults > 2)
  await cassandra.close()
  await expectNoConnections()
})

test('a client that is closed after several outages of its node leaves no connection', async () => {
  const seed = newSeed()
  process.stdout.write(`closes of clients, seed ${String(seed)}\n`)
  const random = createRandom(seed)
  const closes = Array.from({ length: CLIENTS }, async () => {
    const proxy = await openProxy()
    const cassandra = openThrough([proxy])
    await cassandra.ready
    await createCassandraLinkStore(cassandra).find('none') // it is re-prepared after each outage
    for (let i = 0; i < OUTAGES; i++) {
      await proxy.stopListening()
      await sleep(random.int(PHASE_MS_MAX))
      await proxy.heal()
      await sleep(random.int(PHASE_MS_MAX))
    }
    await cassandra.close()
  })
  await Promise.all(closes)
  await expectNoConnections()
})
