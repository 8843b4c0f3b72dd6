// The Cassandra cluster of the tests itself: clients discover only the proxies, acknowledged writes
// survive a killed node, faults reach the driver, and a killed test leaves nothing.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlink, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import cassandra from 'cassandra-driver'
import {
  readSettingProblems,
  expectedSettings,
} from '../../../src/stores/cassandra/cluster-settings.ts'
import {
  type LeakFreeClient,
  preventConnectionLeaks,
} from '../../../src/stores/cassandra/workaround-connection-leaks.ts'
import { quiet } from '../../contract/open-cassandra.ts'
import { type CassandraCluster, startCassandra } from '../../dependencies/cassandra.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 900_000 // includes the download of Java, Maven and the jars
const TEST_MS_MAX = 180_000
const READ_MS = 3000
const WARM_MS_MAX = 180_000
const clusterFile = fileURLToPath(new URL('../../dependencies/cassandra.ts', import.meta.url))
const insert = 'INSERT INTO faults.t (a, b) VALUES (?, ?) IF NOT EXISTS'

/** The result of a conditional write contains this column. */
const isConditionalResult = (message: Buffer) => message.includes('[applied]')

let cluster: CassandraCluster
let client: cassandra.Client
let leakFree: LeakFreeClient
let isClosing = false

function clientOf({ contactPoints, port, localDc }: CassandraCluster): cassandra.Client {
  return new cassandra.Client({
    contactPoints: [...contactPoints],
    protocolOptions: { port },
    localDataCenter: localDc,
    queryOptions: { prepare: true, consistency: cassandra.types.consistencies.localQuorum },
    socketOptions: { readTimeout: READ_MS },
    policies: {
      retry: new cassandra.policies.retry.FallthroughRetryPolicy(),
      reconnection: new cassandra.policies.reconnection.ConstantReconnectionPolicy(250),
    },
  })
}

beforeAll(async () => {
  cluster = await startCassandra({ nodes: 3, proxied: true })
  client = clientOf(cluster)
  leakFree = preventConnectionLeaks(client, { log: quiet, isClosed: () => isClosing })
  const replication = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}"
  const long = { prepare: false, readTimeout: 30_000 }
  await client.execute(`CREATE KEYSPACE faults WITH replication = ${replication}`, [], long)
  await client.execute('CREATE TABLE faults.t (a text PRIMARY KEY, b text)', [], long)
  await warmUp()
}, SETUP_MS_MAX)

afterAll(async () => {
  isClosing = true
  await leakFree.shutdown()
  await cluster.stop()
}, TEST_MS_MAX)

/** Waits until every node executes conditional writes: its first ones may time out. */
async function warmUp(): Promise<void> {
  for (const host of client.hosts.values()) {
    const write = () =>
      client.execute(insert, [crypto.randomUUID(), 'w'], { host }).then(
        () => true,
        () => false,
      )
    await waitFor(`a conditional write by ${host.address}`, write, WARM_MS_MAX)
  }
}

/** The value of a key on a majority of replicas; waits until a majority is available. */
async function valueOf(key: string): Promise<string | undefined> {
  let value: string | undefined
  await waitFor('a result of a majority', async () =>
    client.execute('SELECT b FROM faults.t WHERE a = ?', [key]).then(
      (result) => {
        value = result.rows[0]?.['b'] as string | undefined
        return true
      },
      () => false,
    ),
  )
  return value
}

test('the cluster has the settings that the service requires', async () => {
  const cql = 'SELECT name, value FROM system_views.settings'
  const executeOnEach = async () => {
    const hosts = client.hosts.values()
    const results = await Promise.all(hosts.map((host) => client.execute(cql, [], { host })))
    return results.map(({ rows }) => rows)
  }
  expect(await readSettingProblems({ executeOnEach })).toEqual([])
  const [rows = []] = await executeOnEach()
  const names = rows.map(({ name }) => String(name))
  expect(expectedSettings.filter(({ setting }) => !names.includes(setting))).toEqual([])
})

test('clients discover only the proxies', () => {
  const hosts = client.hosts.values().map(({ address }) => address)
  const expected = cluster.contactPoints.map((point) => `${point}:${String(cluster.port)}`)
  expect(hosts.sort()).toEqual(expected.sort())
})

test(
  'a write whose result the proxies drop is stored, and the driver reports a timeout',
  async () => {
    for (const at of [0, 1, 2]) cluster.proxy(at).dropResponses({ matches: isConditionalResult })
    const error = await client.execute(insert, ['swallowed', 'y']).catch((one: unknown) => one)
    expect(error).toMatchObject({ name: 'OperationTimedOutError' })
    const lost = [0, 1, 2].map((at) => cluster.proxy(at).droppedResponses())
    expect(lost.reduce((sum, count) => sum + count)).toBe(1)
    for (const at of [0, 1, 2]) await cluster.proxy(at).heal()
    expect(await valueOf('swallowed')).toBe('y')
  },
  TEST_MS_MAX,
)

test(
  'a connection that is destroyed fails the write, and the next write succeeds',
  async () => {
    const before = [0, 1, 2].map((at) => cluster.proxy(at).droppedResponses())
    const coordinator = () =>
      [0, 1, 2].find((at) => cluster.proxy(at).droppedResponses() > (before[at] ?? 0))
    // The proxy drops the result, so that the write is in flight when its connection is destroyed.
    for (const at of [0, 1, 2]) cluster.proxy(at).dropResponses({ matches: isConditionalResult })
    const writing = client.execute(insert, ['destroyed', 'z']).catch((one: unknown) => one)
    await waitFor('its result', () => coordinator() !== undefined)
    cluster.proxy(coordinator() ?? 0).resetConnections()
    expect(await writing).toMatchObject({ message: expect.stringMatching(/closed/) as unknown })
    for (const at of [0, 1, 2]) await cluster.proxy(at).heal()
    await waitFor('a successful write', () =>
      client.execute(insert, ['after the destroy', 'z']).then(
        () => true,
        () => false,
      ),
    )
    expect(await valueOf('after the destroy')).toBe('z')
  },
  TEST_MS_MAX,
)

test(
  'a killed node loses no acknowledged write, and restarts with its data',
  async () => {
    await client.execute(insert, ['kept', 'v'])
    const pid = cluster.node(1).pid()
    await cluster.node(1).kill()
    expect(await valueOf('kept')).toBe('v')
    await client.execute(insert, ['while down', 'w'])
    await cluster.node(1).restart()
    expect(cluster.node(1).pid()).not.toBe(pid)
    expect([await valueOf('kept'), await valueOf('while down')]).toEqual(['v', 'w'])
  },
  TEST_MS_MAX,
)

test(
  'the cluster has no majority while two nodes are paused, and has one once they resume',
  async () => {
    for (const at of [0, 1]) cluster.node(at).pause()
    await expect(client.execute(insert, ['no majority', 'x'])).rejects.toThrow(/.+/)
    for (const at of [0, 1]) cluster.node(at).resume()
    expect(await valueOf('kept')).toBe('v')
  },
  TEST_MS_MAX,
)

test(
  'a killed test leaves neither nodes nor data',
  async () => {
    const script = `
      const { startCassandra } = await import(${JSON.stringify(clusterFile)})
      const cluster = await startCassandra({ nodes: 1 })
      console.log(cluster.node(0).pid())
      await new Promise(() => setInterval(() => {}, 1000))`
    const args = ['--input-type=module', '--eval', script]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const [output] = (await withinDeadline(
      'a cluster',
      once(child.stdout, 'data'),
      TEST_MS_MAX,
    )) as [Buffer]
    const pid = Number(output.toString())
    const home = await readlink(`/proc/${String(pid)}/cwd`)
    child.kill('SIGKILL')
    const isDeleted = (path: string) =>
      stat(path).then(
        () => false,
        () => true,
      )
    await waitFor('the node to exit', () => isDeleted(`/proc/${String(pid)}/cwd/.`))
    await waitFor('its data to be deleted', () => isDeleted(dirname(home)))
  },
  TEST_MS_MAX,
)
