// The report of the benchmark of the limiter: medians for each cell, ratios within each turn, and
// the goals of the design.
import { medianOf, type Report } from './report.ts'

/** The figures of one turn of one contender in one cell; times are of the whole span. */
export interface LimiterSpan {
  readonly responses: number
  readonly elapsedMs: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** CPU time of the limiter, of its Redis, and of the load generator. */
  readonly cpuUs: number
  readonly redisUs: number
  readonly generatorUs: number
  /** The ratio of decisions without Redis: past the deadline, or with an open circuit breaker. */
  readonly fallbackRatio: number
}

/** The turns of one cell, by contender. */
export interface CellFigures {
  readonly shape: string
  readonly isCached: boolean
  readonly inFlight: number
  readonly turns: readonly Readonly<Record<string, LimiterSpan>>[]
}

type Figure = (span: LimiterSpan) => number

const cpuEach: Figure = ({ cpuUs, responses }) => cpuUs / responses
const p99: Figure = ({ p99Ms }) => p99Ms

const fallbackPercent: Figure = ({ fallbackRatio }) => fallbackRatio * 100
/** Above it the figures are those of the fallback, and the goals do not apply. */
const FALLBACK_PERCENT_MAX = 1

/** The goals: maximum ratios of ours to the reference, all with 64 calls in flight. */
const goals = [
  { shape: 'one', isCached: false, figure: 'CPU per call', of: cpuEach, goal: 1.2 },
  { shape: 'three', isCached: false, figure: 'CPU per call', of: cpuEach, goal: 1.05 },
  { shape: 'hot', isCached: true, figure: 'CPU per call', of: cpuEach, goal: 1 },
  { shape: 'one', isCached: false, figure: 'p99', of: p99, goal: 1 },
  { shape: 'three', isCached: false, figure: 'p99', of: p99, goal: 1 },
] as const
const GOAL_IN_FLIGHT = 64

/** The report. */
export function limitsReportOf(given: {
  readonly conditions: Report['conditions']
  readonly cells: readonly CellFigures[]
  readonly isReference: boolean
  readonly residentMb: readonly { name: string; residentMb: readonly number[] }[]
}): Report {
  const { conditions, cells, isReference, residentMb } = given
  const peer = isReference ? 'Go' : 'floor'
  const memory = residentMb
    .filter((each) => each.residentMb.length > 0)
    .map((each) => `${each.name} ${each.residentMb.map((mb) => mb.toFixed(0)).join(' / ')}`)
  return {
    bench: 'ratelimit',
    conditions,
    headings: [
      'descriptors',
      'in flight',
      'limiter',
      'CPU µs per call',
      `× ${peer}`,
      'calls/s',
      'p50 ms',
      'p99 ms',
      'Redis µs per call',
      'generator µs per call',
      'without Redis %',
    ],
    rows: cells.flatMap((cell) => rowsOf(cell, peer)),
    verdict: [
      ...(isReference ? goals.map((goal) => verdictOf(cells, goal)) : [floorSentence]),
      `Resident MB (10⁶ bytes), without and with the local cache: ${memory.join('; ')}`,
    ],
    figures: { peer, goals, cells, residentMb },
  }
}

const floorSentence =
  'REFERENCE_RATELIMIT names no binary of envoyproxy/ratelimit, so there is no goal: the floor ' +
  'is a bare Node.js process that counts the same descriptors, one EVALSHA per call over ioredis.'

function rowsOf(cell: CellFigures, peer: string): string[][] {
  const names = [...new Set(cell.turns.flatMap((turn) => Object.keys(turn)))].toSorted()
  return names.map((name) => {
    const spans = cell.turns.flatMap((turn) => turn[name] ?? [])
    const median = (figure: Figure) => medianOf(spans.map(figure))
    const ratios = name === peer ? [] : ratiosOf(cell, peer, cpuEach)
    return [
      `${cell.shape}${cell.isCached ? ', local cache' : ''}`,
      String(cell.inFlight),
      name,
      median(cpuEach).toFixed(1),
      ratios.length === 0 ? '' : medianOf(ratios).toFixed(2),
      median(({ responses, elapsedMs }) => (responses / elapsedMs) * 1000).toFixed(0),
      median(({ p50Ms }) => p50Ms).toFixed(2),
      median(p99).toFixed(2),
      median(({ redisUs, responses }) => redisUs / responses).toFixed(1),
      median(({ generatorUs, responses }) => generatorUs / responses).toFixed(1),
      median(fallbackPercent).toFixed(2),
    ]
  })
}

/** The ratio of ours to the peer in each turn. */
function ratiosOf(cell: CellFigures, peer: string, figure: Figure): number[] {
  return cell.turns.flatMap((turn) => {
    const [other, ours] = [turn[peer], turn['ours']]
    return other === undefined || ours === undefined ? [] : [figure(ours) / figure(other)]
  })
}

function verdictOf(cells: readonly CellFigures[], goal: (typeof goals)[number]): string {
  const cell = cells.find(
    ({ shape, isCached, inFlight }) =>
      shape === goal.shape && isCached === goal.isCached && inFlight === GOAL_IN_FLIGHT,
  )
  const ratios = cell === undefined ? [] : ratiosOf(cell, 'Go', goal.of)
  const ratio = medianOf(ratios)
  const spans = cell?.turns.flatMap((turn) => turn['ours'] ?? []) ?? []
  const fallback = Math.max(...spans.map(fallbackPercent))
  const result = ratio <= goal.goal ? 'reached' : 'NOT reached'
  const percent = fallback.toFixed(1)
  const unusable = `NOT judged: ${percent} % of a turn's decisions were without Redis`
  const what = `${goal.shape}${goal.isCached ? ', local cache' : ''}`
  return (
    `Ratio of ${goal.figure}, ours to Go, ${what}, ${GOAL_IN_FLIGHT} in flight, median of ` +
    `${ratios.length}: ${ratio.toFixed(3)} (${ratios.map((each) => each.toFixed(2)).join(' ')}); ` +
    `goal at most ${goal.goal}: ${fallback > FALLBACK_PERCENT_MAX ? unusable : result}`
  )
}
