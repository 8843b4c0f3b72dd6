// ShouldRateLimit on Redis: our role, compared with the reference that REFERENCE_RATELIMIT names or
// otherwise with a floor that calls a Redis script; in turns on one core. The generator and a Redis
// for each limiter share the other core.
import { roleArguments } from '../../test/kit/processes/role-process.ts'
import { startRedis } from '../../test/dependencies/redis.ts'
import { prepareCalls } from './drive-calls.ts'
import { startFloor } from './floor-process.ts'
import { moveToGeneratorCore } from './pinning.ts'
import { cpuUsOf, residentMbOf } from './process-figures.ts'
import { requestsOf, type Shape } from './ratelimit-calls.ts'
import type { LimitFloorSpan, LimitFloorTask } from './ratelimit-floor.ts'
import { type CellFigures, limitsReportOf, type LimiterSpan } from './ratelimit-report.ts'
import { type LimiterServer, startLimiter } from './ratelimit-server.ts'
import { type BenchOptions, conditionsOf, repetitionOf, type Report } from './report.ts'

const CONNECTIONS = 4
const LOCAL_CACHE_BYTES = 16 * 1024 * 1024
const WARM_UP_MS = 2000
const WARM_UP_IN_FLIGHT = 64

/** One measured case: the shape of calls, the local cache, and the calls in flight. */
interface Cell {
  readonly shape: Shape
  readonly isCached: boolean
  readonly inFlight: number
}

/** One of the two compared limiters. */
interface Contender {
  readonly name: string
  /** Undefined if the cell does not apply to the contender. */
  measure(cell: Cell, msMax: number): Promise<LimiterSpan | undefined>
  /** Resident memory in MB (10⁶ bytes), without and with the local cache; empty for the floor. */
  residentMb(): readonly number[]
  stop(): Promise<void>
}

const kinds = [
  { shape: 'one', isCached: false },
  { shape: 'three', isCached: false },
  { shape: 'hot', isCached: false },
  { shape: 'hot', isCached: true },
] as const
const cells: readonly Cell[] = kinds.flatMap((kind) =>
  [1, 8, 64].map((inFlight) => ({ ...kind, inFlight })),
)

/** Runs the benchmark. */
export async function benchRatelimit(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options), connections: CONNECTIONS }
  const reference = process.env['REFERENCE_RATELIMIT'] ?? ''
  const contenders: Contender[] = []
  try {
    contenders.push(reference === '' ? await openFloor() : await openLimiter('Go', [reference]))
    const ours = [process.execPath, ...roleArguments('ratelimit')]
    contenders.push(await openLimiter('ours', ours))
    const measured = await takeTurns(contenders, options)
    return limitsReportOf({
      conditions: { ...conditions, Redis: 'one per limiter, on the core of the load generator' },
      cells: measured,
      isReference: reference !== '',
      residentMb: contenders.map((each) => ({ name: each.name, residentMb: each.residentMb() })),
    })
  } finally {
    for (const contender of contenders) await contender.stop()
  }
}

/** Measures each cell on each contender in turns; reverses the order each time. */
async function takeTurns(
  contenders: readonly Contender[],
  options: BenchOptions,
): Promise<CellFigures[]> {
  for (const kind of kinds) {
    const warming = { ...kind, inFlight: WARM_UP_IN_FLIGHT }
    for (const contender of contenders) await contender.measure(warming, WARM_UP_MS)
  }
  const figures = cells.map((cell) => ({ ...cell, turns: [] as Record<string, LimiterSpan>[] }))
  for (let repetition = 0; repetition < options.repetitions; repetition++) {
    const order = repetition % 2 === 0 ? contenders : contenders.toReversed()
    for (const cell of figures) {
      const turn: Record<string, LimiterSpan> = {}
      for (const contender of order) {
        const span = await contender.measure(cell, options.seconds * 1000)
        if (span !== undefined) turn[contender.name] = span
      }
      cell.turns.push(turn)
      const each = Object.entries(turn).map(
        ([name, { cpuUs, responses }]) => `${name} ${(cpuUs / responses).toFixed(1)}`,
      )
      const what = `${cell.shape}${cell.isCached ? ' cached' : ''}, ${cell.inFlight} in flight`
      options.log(`${what}: CPU µs per call: ${each.join(', ')}`)
    }
  }
  return figures
}

async function openLimiter(name: string, argv: readonly string[]): Promise<Contender> {
  const bare = await startLimiter(argv, { localCacheBytes: 0 })
  const cached = await startLimiter(argv, { localCacheBytes: LOCAL_CACHE_BYTES }).catch(
    async (error: unknown) => {
      await bare.stop()
      throw error
    },
  )
  const requests = { one: requestsOf('one'), three: requestsOf('three'), hot: requestsOf('hot') }
  return {
    name,
    measure: ({ shape, isCached, inFlight }, msMax) => {
      const given = { requests: requests[shape], inFlight, msMax, isHot: shape === 'hot' }
      return measureLimiter(isCached ? cached : bare, given)
    },
    residentMb: () => [bare, cached].map(({ pid }) => residentMbOf(pid).nowMb),
    async stop() {
      await bare.stop()
      await cached.stop()
    },
  }
}

async function measureLimiter(
  server: LimiterServer,
  load: { requests: readonly Buffer[]; inFlight: number; msMax: number; isHot: boolean },
): Promise<LimiterSpan> {
  const { isHot, ...rest } = load
  const driver = await prepareCalls({ ...rest, port: server.port, connections: CONNECTIONS })
  const decisionsBefore = await server.decisions()
  const before = { cpuUs: cpuUsOf(server.pid), redisUs: cpuUsOf(server.redisPid) }
  const ownBefore = process.cpuUsage()
  const driven = await driver.run()
  const own = process.cpuUsage(ownBefore)
  const cpuUs = cpuUsOf(server.pid) - before.cpuUs
  const redisUs = cpuUsOf(server.redisPid) - before.redisUs
  const decisions = await server.decisions()
  const fallbacks = decisions.fallbacks - decisionsBefore.fallbacks
  const fallbackRatio = fallbacks / Math.max(1, decisions.all - decisionsBefore.all)
  const { ok, over } = driven.codes
  // The hot key admits a few calls at first; any other unexpected verdict is an error.
  const wrong = isHot ? ok - driven.responses / 100 : over
  if (wrong > 0) throw new Error(`wrong verdicts: ${ok} calls admitted, ${over} denied`)
  return { ...driven, cpuUs, redisUs, fallbackRatio, generatorUs: own.user + own.system }
}

async function openFloor(): Promise<Contender> {
  const redis = await startRedis()
  const floor = startFloor('ratelimit-floor.ts')
  return {
    name: 'floor',
    async measure({ shape, isCached, inFlight }, ms) {
      if (isCached) return undefined // no Redis calls, so the floor does not apply
      const task: LimitFloorTask = { redisPort: redis.port, shape, inFlight, ms }
      const redisBefore = cpuUsOf(redis.pid())
      const span = (await floor.request(task)) as LimitFloorSpan
      return {
        ...span,
        redisUs: cpuUsOf(redis.pid()) - redisBefore,
        fallbackRatio: 0,
        generatorUs: 0,
      }
    },
    residentMb: () => [],
    async stop() {
      await floor.stop()
      await redis.close()
    },
  }
}
