// The CPU time of creates on one real Cassandra node, compared with bare node:http and the same
// insert through the driver, in turns; and the server's count of conditional writes per create.
import { startRole } from '../../test/kit/processes/role-process.ts'
import { KEYSPACE, startCassandraSetup } from './cassandra-setup.ts'
import { compare, type Contender } from './compare.ts'
import { countConditionalWrites } from './conditional-writes.ts'
import type { CassandraFloorTask } from './create-cassandra-floor.ts'
import { CREATE_CONNECTIONS, createRequest } from './create-links.ts'
import { prepareLoad } from './drive.ts'
import { type FloorProcess, startFloor } from './floor-process.ts'
import { moveToGeneratorCore, onServerCore } from './pinning.ts'
import { type BenchOptions, conditionsOf, repetitionOf, type Report } from './report.ts'

const GOAL = 0.85
const REQUESTS_MAX = 1_000_000
/** More than a run consumes. */
const CODES = 2_000_000
const JOB_MS_MAX = 300_000
/** Creates whose conditional writes are counted, including the claims of some blocks. */
const COUNTED = 20_000
/** At the rate of one Cassandra node, V8 and the JVM need this time to compile hot code. */
const WARM_UP_MS = 25_000
const GOALS_LWT = { without: 1.01, withKey: 2.01 }

/** Runs the benchmark. */
export async function benchCreateCassandra(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const stops: (() => Promise<void>)[] = []
  try {
    const { env, cassandra } = await startCassandraSetup(stops, { codes: CODES })
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
      warmUpMs: WARM_UP_MS,
      conditions: {
        ...conditions,
        'in flight': CREATE_CONNECTIONS,
        'Cassandra nodes': 1,
        'warm-up ms': WARM_UP_MS,
      },
    })
    return withLwts(report, {
      without: await lwtsPerCreate(port, () => createRequest()),
      withKey: await lwtsPerCreate(port, keyedRequest),
    })
  } finally {
    for (const stop of stops) await stop()
  }
}

/** Sends the floor its task; resolves to its port. */
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
  const response = (await floor.request(task)) as { port: number }
  return response.port
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

/** Conditional writes of the server per create, over some creates. */
async function lwtsPerCreate(port: number, request: () => Buffer): Promise<number> {
  const before = await countConditionalWrites()
  const driver = await prepareLoad({ ...loadOf(port, request, COUNTED), msMax: JOB_MS_MAX })
  const { responses } = await driver.run()
  return ((await countConditionalWrites()) - before) / responses
}

function withLwts(report: Report, lwts: { without: number; withKey: number }): Report {
  const verdictOf = (what: string, each: number, goal: number) =>
    `Conditional writes of the server per create ${what}: ${each.toFixed(4)}; ` +
    `goal at most ${goal}: ${each <= goal ? 'reached' : 'NOT reached'}`
  return {
    ...report,
    verdict: [
      ...report.verdict,
      verdictOf('without an Idempotency-Key', lwts.without, GOALS_LWT.without),
      verdictOf('with one', lwts.withKey, GOALS_LWT.withKey),
    ],
    figures: { ...(report.figures as object), lwts },
  }
}
