// Creates on one real Cassandra node against bare node:http with the driver doing the same insert,
// turn by turn, by the CPU time of the process that creates; and the conditional writes that a
// create takes, counted by the server.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startJob } from '../../test/component/role-job.ts'
import { startRole } from '../../test/component/role-process.ts'
import { startCassandra } from '../../test/parts/cassandra.ts'
import { startRedis } from '../../test/parts/redis.ts'
import { compare, type Contender } from './compare.ts'
import { countConditionalWrites, JMX_PORT } from './conditional-writes.ts'
import type { CassandraFloorTask } from './create-cassandra-floor.ts'
import { CREATE_CONNECTIONS, createRequest } from './create-links.ts'
import { prepareLoad } from './drive.ts'
import { type FloorProcess, startFloor } from './floor-process.ts'
import { moveToGeneratorCore, onServerCore } from './pinning.ts'
import { type BenchOptions, conditionsOf, repetitionOf, type Report } from './report.ts'

const GOAL = 0.85
const REQUESTS_MAX = 1_000_000
const KEYSPACE = 'curtail'
/** More than the service can use up in a run. */
const CODES = 2_000_000
const JOB_MS_MAX = 300_000
/** Creates whose conditional writes are counted: some blocks of codes are claimed among them. */
const COUNTED = 20_000
const GOALS_LWT = { without: 1.01, withKey: 2.01 }

/** Runs the benchmark. */
export async function benchCreateCassandra(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const stops: (() => Promise<void>)[] = []
  try {
    const { env, cassandra } = await startParts(stops)
    const ours = await startRole({ role: 'create', wrapper: onServerCore, env })
    stops.unshift(() => ours.stop())
    const floor = startFloor('create-cassandra-floor.ts')
    stops.unshift(() => floor.stop())
    const port = Number(ours.ready['port'])
    const floorPort = await startServing(floor, port, cassandra)
    const report = await compare({
      bench: 'create-cassandra',
      goal: GOAL,
      floor: contender({ name: 'node:http + insert', pid: floor.pid, port: floorPort }),
      ours: contender({ name: 'create', pid: ours.pid, port }),
      options,
      conditions: { ...conditions, 'in flight': CREATE_CONNECTIONS, 'Cassandra nodes': 1 },
    })
    return withLwts(report, {
      without: await lwtsEach(port, () => createRequest()),
      withKey: await lwtsEach(port, keyedRequest),
    })
  } finally {
    for (const stop of stops) await stop()
  }
}

/** Cassandra with our tables and a full pool, and Redis. */
async function startParts(stops: (() => Promise<void>)[]) {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-bench-'))
  stops.unshift(() => rm(folder, { recursive: true }))
  const cassandra = await startCassandra({
    nodes: 1,
    jvmFlags: [`-Dcassandra.jmx.local.port=${JMX_PORT}`],
  })
  stops.unshift(() => cassandra.stop())
  const redis = await startRedis()
  stops.unshift(() => redis.close())
  const store = {
    CASSANDRA_CONTACT_POINTS: cassandra.contactPoints.join(','),
    CASSANDRA_PORT: String(cassandra.port),
    CASSANDRA_LOCAL_DC: cassandra.localDc,
    CASSANDRA_KEYSPACE: KEYSPACE,
  }
  const secret = join(folder, 'secret')
  await writeFile(secret, randomBytes(32))
  const replication = { CASSANDRA_REPLICATION: `${cassandra.localDc}:1` }
  await startJob({ role: 'migrate', env: { ...store, ...replication } }).succeeded(JOB_MS_MAX)
  const refill = { ...store, CODE_SECRET_FILE: secret, POOL_TARGET: String(CODES) }
  await startJob({ role: 'refill', env: refill }).succeeded(JOB_MS_MAX)
  const env = {
    ...store,
    PORT: '0',
    ADMIN_PORT: '0',
    BASE_URL: 'http://s.example',
    REDIS_URL: `redis://127.0.0.1:${redis.port}`,
  }
  return { cassandra, env }
}

/** Tells the floor where to insert and what to answer; resolves to its port. */
async function startServing(
  floor: FloorProcess,
  ourPort: number,
  cassandra: { contactPoints: readonly string[]; port: number; localDc: string },
): Promise<number> {
  const sample = await fetch(`http://127.0.0.1:${ourPort}/v1/urls`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"long_url":"https://example.com/a/path/of/usual/length?id=sample"}',
  })
  const own = new Set(['date', 'connection', 'keep-alive'])
  const { contactPoints, port, localDc } = cassandra
  const task: CassandraFloorTask = {
    contactPoints,
    port,
    localDc,
    keyspace: KEYSPACE,
    headers: [...sample.headers].filter(([name]) => !own.has(name)).flat(),
  }
  const answer = (await floor.ask(task)) as { port: number }
  return answer.port
}

function contender({ name, pid, port }: { name: string; pid: number; port: number }): Contender {
  return { name, pid, load: loadOf(port, () => createRequest(), REQUESTS_MAX) }
}

function loadOf(port: number, request: () => Buffer, requestsMax: number) {
  return { port, connections: CREATE_CONNECTIONS, request, expectedStatuses: [201], requestsMax }
}

let keys = 0

function keyedRequest(): Buffer {
  return createRequest(`Idempotency-Key: bench-${(keys++).toString()}\r\n`)
}

/** Conditional writes that the server did for each of some creates. */
async function lwtsEach(port: number, request: () => Buffer): Promise<number> {
  const before = await countConditionalWrites()
  const driver = await prepareLoad({ ...loadOf(port, request, COUNTED), msMax: JOB_MS_MAX })
  const { answers } = await driver.run()
  return ((await countConditionalWrites()) - before) / answers
}

function withLwts(report: Report, lwts: { without: number; withKey: number }): Report {
  const said = (what: string, each: number, goal: number) =>
    `Conditional writes at the server for a create ${what}: ${each.toFixed(4)}; ` +
    `goal at most ${goal}: ${each <= goal ? 'reached' : 'NOT reached'}`
  return {
    ...report,
    verdict: [
      ...report.verdict,
      said('without an Idempotency-Key', lwts.without, GOALS_LWT.without),
      said('with one', lwts.withKey, GOALS_LWT.withKey),
    ],
    figures: { ...(report.figures as object), lwts },
  }
}
