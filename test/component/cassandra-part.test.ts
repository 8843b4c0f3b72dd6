// The part `cassandra` itself: clients see only the proxies, what was acknowledged outlives a
// killed node, faults look to the driver as they do in production, and nothing is left behind.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlink, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import cassandra from 'cassandra-driver'
import {
  readSettingProblems,
  expectedSettings,
} from '../../src/stores/cassandra/cluster-settings.ts'
import {
  type LeakFreeClient,
  preventConnectionLeaks,
} from '../../src/stores/cassandra/workaround-connection-leaks.ts'
import { quiet } from '../contract/open-cassandra.ts'
import { type CassandraCluster, startCassandra } from '../parts/cassandra.ts'
import { inTime, waitFor } from './wait-for.ts'

const SETUP_MS_MAX = 900_000 // Java, Maven and the jars may have to be fetched
const TEST_MS_MAX = 90_000
const READ_MS = 3000
const WARM_MS_MAX = 60_000
const partFile = join(dirname(fileURLToPath(import.meta.url)), '../parts/cassandra.ts')
const insert = 'INSERT INTO faults.t (a, b) VALUES (?, ?) IF NOT EXISTS'

/** The answer to a conditional write names this column. */
const isOfTransaction = (message: Buffer) => message.includes('[applied]')

let cluster: CassandraCluster
let client: cassandra.Client
let ending: LeakFreeClient
let isEnding = false

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
  ending = preventConnectionLeaks(client, { log: quiet, isClosed: () => isEnding })
  const replication = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}"
  const long = { prepare: false, readTimeout: 30_000 }
  await client.execute(`CREATE KEYSPACE faults WITH replication = ${replication}`, [], long)
  await client.execute('CREATE TABLE faults.t (a text PRIMARY KEY, b text)', [], long)
  await warmUp()
}, SETUP_MS_MAX)

afterAll(async () => {
  isEnding = true
  await ending.shutdown()
  await cluster.stop()
}, TEST_MS_MAX)

/** Waits until every node makes conditional writes: their first ones may take it too long. */
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

/** The value of a key as a majority says it, once one answers. */
async function valueOf(key: string): Promise<string | undefined> {
  let value: string | undefined
  await waitFor('an answer of a majority', async () =>
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

test('its settings are those that the service requires', async () => {
  const cql = 'SELECT name, value FROM system_views.settings'
  const executeOnEach = async () => {
    const hosts = client.hosts.values()
    const answers = await Promise.all(hosts.map((host) => client.execute(cql, [], { host })))
    return answers.map(({ rows }) => rows)
  }
  expect(await readSettingProblems({ executeOnEach })).toEqual([])
  const [rows = []] = await executeOnEach()
  const names = rows.map(({ name }) => String(name))
  expect(expectedSettings.filter(({ setting }) => !names.includes(setting))).toEqual([])
})

test('clients are told of the proxies alone', () => {
  const hosts = client.hosts.values().map(({ address }) => address)
  const expected = cluster.contactPoints.map((point) => `${point}:${String(cluster.port)}`)
  expect(hosts.sort()).toEqual(expected.sort())
})

test(
  'an answer that the proxies swallow leaves a row, and an error that does not say so',
  async () => {
    for (const at of [0, 1, 2]) cluster.proxy(at).swallow({ isSuch: isOfTransaction })
    const error = await client.execute(insert, ['swallowed', 'y']).catch((one: unknown) => one)
    expect(error).toMatchObject({ name: 'OperationTimedOutError' })
    const lost = [0, 1, 2].map((at) => cluster.proxy(at).swallowed())
    expect(lost.reduce((sum, count) => sum + count)).toBe(1)
    for (const at of [0, 1, 2]) await cluster.proxy(at).heal()
    expect(await valueOf('swallowed')).toBe('y')
  },
  TEST_MS_MAX,
)

test(
  'a cut connection is an error of the driver, and the next write works',
  async () => {
    const before = [0, 1, 2].map((at) => cluster.proxy(at).swallowed())
    const asked = () => [0, 1, 2].find((at) => cluster.proxy(at).swallowed() > (before[at] ?? 0))
    // Its answer never comes, so that the cut finds it on its way.
    for (const at of [0, 1, 2]) cluster.proxy(at).swallow({ isSuch: isOfTransaction })
    const writing = client.execute(insert, ['cut', 'z']).catch((one: unknown) => one)
    await waitFor('its answer', () => asked() !== undefined)
    cluster.proxy(asked() ?? 0).cut()
    expect(await writing).toMatchObject({ message: expect.stringMatching(/closed/) as unknown })
    for (const at of [0, 1, 2]) await cluster.proxy(at).heal()
    await waitFor('a write that works', () =>
      client.execute(insert, ['after the cut', 'z']).then(
        () => true,
        () => false,
      ),
    )
    expect(await valueOf('after the cut')).toBe('z')
  },
  TEST_MS_MAX,
)

test(
  'one node killed loses nothing that was acknowledged, and comes back with its data',
  async () => {
    await client.execute(insert, ['kept', 'v'])
    const pid = cluster.node(1).pid()
    await cluster.node(1).kill()
    expect(await valueOf('kept')).toBe('v')
    await client.execute(insert, ['while away', 'w'])
    await cluster.node(1).restart()
    expect(cluster.node(1).pid()).not.toBe(pid)
    expect([await valueOf('kept'), await valueOf('while away')]).toEqual(['v', 'w'])
  },
  TEST_MS_MAX,
)

test(
  'two nodes held are no majority; resumed they are one again',
  async () => {
    for (const at of [0, 1]) cluster.node(at).pause()
    await expect(client.execute(insert, ['no majority', 'x'])).rejects.toThrow(/.+/)
    for (const at of [0, 1]) cluster.node(at).resume()
    expect(await valueOf('kept')).toBe('v')
  },
  TEST_MS_MAX,
)

test(
  'a test that is killed leaves neither its nodes nor their data',
  async () => {
    const script = `
      const { startCassandra } = await import(${JSON.stringify(partFile)})
      const cluster = await startCassandra({ nodes: 1 })
      console.log(cluster.node(0).pid())
      await new Promise(() => setInterval(() => {}, 1000))`
    const args = ['--input-type=module', '--eval', script]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const [told] = (await inTime('a cluster', once(child.stdout, 'data'), TEST_MS_MAX)) as [Buffer]
    const pid = Number(told.toString())
    const home = await readlink(`/proc/${String(pid)}/cwd`)
    child.kill('SIGKILL')
    const isGone = (path: string) =>
      stat(path).then(
        () => false,
        () => true,
      )
    await waitFor('the node to go', () => isGone(`/proc/${String(pid)}/cwd/.`))
    await waitFor('its data to go', () => isGone(dirname(home)))
  },
  TEST_MS_MAX,
)
