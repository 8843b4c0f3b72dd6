// The cost of creates and cold redirects as the number of links grows: measured with a tenth of the
// links in one Cassandra node, and with all of them.
import { Redis } from 'ioredis'
import { type RoleProcess, startRole } from '../../test/kit/processes/role-process.ts'
import { type CassandraSetup, startCassandraSetup } from './cassandra-setup.ts'
import { coldLoad } from './cold.ts'
import { CREATE_CONNECTIONS, createRequest } from './create-links.ts'
import { type Load, prepareLoad } from './drive.ts'
import { filledCode, fillLinks } from './fill-links.ts'
import { moveToGeneratorCore, onServerCore } from './pinning.ts'
import { cpuUsOf } from './process-figures.ts'
import { type BenchOptions, conditionsOf, medianOf, repetitionOf, type Report } from './report.ts'
import { untilSettled } from './until-settled.ts'

/** The default of `--links`. Writing ten million links takes a quarter of an hour. */
const LINKS = 1_000_000
/** After this time the benchmark continues with the links written so far. */
const FILL_MS_MAX = 900_000
const FILL_STEP = 50_000
const CODES = 500_000
const CREATES_MAX = 400_000
/** Cold codes for each size, evenly from all links. */
const COLD_CODES = 40_000
const WARM_UP_MS = 3000

/** The figures of one span. */
interface Span {
  readonly cpuUs: number
  /** Responses 503: the store did not respond within its deadline. */
  readonly unavailable: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** The figures for one number of links. */
interface Size {
  readonly links: number
  readonly creates: readonly Span[]
  readonly redirects: readonly Span[]
}

/** Runs the benchmark with `links` links. */
export async function benchGrowth(options: BenchOptions & { links?: number }): Promise<Report> {
  moveToGeneratorCore()
  const { links = LINKS } = options
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const stops: (() => Promise<void>)[] = []
  try {
    const setup = await startCassandraSetup(stops, { codes: CODES })
    const start = async (role: string) => {
      const running = await startRole({ role, wrapper: onServerCore, env: setup.env })
      stops.unshift(() => running.stop())
      return running
    }
    const roles = { create: await start('create'), redirect: await start('redirect') }
    const sizes: Size[] = []
    let written = 0
    for (const count of [Math.ceil(links / 10), links]) {
      written = await fillTo({ count, written, setup, options })
      await untilSettled(setup.cassandra.nodes, options.log)
      sizes.push(await measureSize({ links: written, options, setup, roles }))
    }
    return reportOf(sizes, { ...conditions, 'Cassandra nodes': 1, 'cold codes each': COLD_CODES })
  } finally {
    for (const stop of stops) await stop()
  }
}

/** Writes links up to `count` or a time limit; resolves to their number. */
async function fillTo(given: {
  count: number
  written: number
  setup: CassandraSetup
  options: BenchOptions
}): Promise<number> {
  const { contactPoints, port, localDc } = given.setup.cassandra
  const { log } = given.options
  const endMs = performance.now() + FILL_MS_MAX
  let { written } = given
  while (written < given.count && performance.now() < endMs) {
    const count = Math.min(given.count, written + FILL_STEP)
    await fillLinks({ contactPoints, port, localDc, from: written, count, log })
    written = count
  }
  return written
}

async function measureSize(given: {
  links: number
  options: BenchOptions
  setup: CassandraSetup
  roles: { create: RoleProcess; redirect: RoleProcess }
}): Promise<Size> {
  const { links, options, setup, roles } = given
  const redis = new Redis({ host: '127.0.0.1', port: setup.redis.port })
  await redis.flushall() // codes must be cold at each size
  redis.disconnect()
  const stride = links / COLD_CODES
  const codes = Array.from({ length: COLD_CODES }, (_, i) => filledCode(Math.floor(i * stride)))
  const redirectLoad = coldLoad(Number(roles.redirect.ready['port']), codes, [302, 503])
  const createLoad = {
    port: Number(roles.create.ready['port']),
    connections: CREATE_CONNECTIONS,
    request: () => createRequest(),
    expectedStatuses: [201, 503],
    requestsMax: CREATES_MAX,
  }
  const creates: Span[] = []
  const redirects: Span[] = []
  await measure(roles.create.pid, createLoad, WARM_UP_MS)
  for (let repetition = 0; repetition < options.repetitions; repetition++) {
    creates.push(await measure(roles.create.pid, createLoad, options.seconds * 1000))
    if (redirectLoad.requestsMax > COLD_CODES / 10) {
      redirects.push(await measure(roles.redirect.pid, redirectLoad, options.seconds * 1000))
    }
  }
  options.log(`measured with ${links} links`)
  return { links, creates, redirects }
}

async function measure(pid: number, load: Omit<Load, 'msMax'>, msMax: number): Promise<Span> {
  const driver = await prepareLoad({ ...load, msMax })
  const beforeUs = cpuUsOf(pid)
  const { responses, statuses, p50Ms, p99Ms } = await driver.run()
  const cpuUs = (cpuUsOf(pid) - beforeUs) / responses
  return { cpuUs, unavailable: statuses[503] ?? 0, p50Ms, p99Ms }
}

function reportOf(sizes: readonly Size[], conditions: Report['conditions']): Report {
  const median = (spans: readonly Span[], of: (span: Span) => number) => medianOf(spans.map(of))
  const cells = (spans: readonly Span[]) => [
    median(spans, ({ cpuUs }) => cpuUs).toFixed(1),
    median(spans, ({ p50Ms }) => p50Ms).toFixed(2),
    median(spans, ({ p99Ms }) => p99Ms).toFixed(2),
    String(spans.reduce((sum, { unavailable }) => sum + unavailable, 0)),
  ]
  const rows = sizes.flatMap(({ links, creates, redirects }) => [
    [String(links), 'create', ...cells(creates)],
    [String(links), 'cold redirect', ...cells(redirects)],
  ])
  const [few, many] = [sizes.at(0), sizes.at(-1)]
  const growth = (of: (size: Size) => readonly Span[], what: (span: Span) => number) =>
    few === undefined || many === undefined
      ? Number.NaN
      : median(of(many), what) / median(of(few), what)
  const verdictOf = (name: string, of: (size: Size) => readonly Span[]) =>
    `With all links, compared with a tenth of them, a ${name} takes ` +
    `${growth(of, ({ cpuUs }) => cpuUs).toFixed(2)} times the CPU time and ` +
    `${growth(of, ({ p50Ms }) => p50Ms).toFixed(2)} times the time (median).`
  return {
    bench: 'growth',
    conditions,
    headings: ['links', 'request', 'CPU µs per request', 'p50 ms', 'p99 ms', '503s'],
    rows,
    verdict: [
      verdictOf('create', ({ creates }) => creates),
      verdictOf('cold redirect', ({ redirects }) => redirects),
    ],
    figures: sizes,
  }
}
