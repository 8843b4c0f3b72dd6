// Durable creates of standalone over HTTP, compared with node:sqlite alone, in turns on one core.
// In each turn the floor does as many creates as standalone, in transactions of the same mean size.
import type { Standalone } from '../../test/kit/processes/standalone.ts'
import type { FloorSpan, FloorTask } from './create-floor.ts'
import { CREATE_CONNECTIONS, prepareCreates } from './create-links.ts'
import type { LoadFigures } from './drive.ts'
import { type FloorProcess, startFloor } from './floor-process.ts'
import { startLimited } from './limited-standalone.ts'
import { moveToGeneratorCore } from './pinning.ts'
import { cpuUsOf } from './process-figures.ts'
import { type BenchOptions, conditionsOf, medianOf, repetitionOf, type Report } from './report.ts'

const GOAL = 0.7
const WARM_UP_MS = 4000
const LINKS_MAX = 2_000_000

/** The figures of one turn of standalone and of the floor. */
interface Turn {
  readonly ours: LoadFigures & { readonly cpuUs: number; readonly group: number }
  readonly floor: FloorSpan
}

/** Runs the benchmark. */
export async function benchCreate(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const ours = await startLimited()
  const floor = startFloor('create-floor.ts')
  try {
    const turns: Turn[] = []
    for (let turn = 0; turn <= options.repetitions; turn++) {
      const measured = await takeTurn(ours, floor, turn === 0 ? WARM_UP_MS : options.seconds * 1000)
      if (turn === 0) continue
      turns.push(measured)
      options.log(`ratio ${ratioOf(measured).toFixed(3)}, group ${measured.ours.group.toFixed(1)}`)
    }
    return reportOf(turns, { ...conditions, 'in flight': CREATE_CONNECTIONS })
  } finally {
    await floor.stop()
    await ours.stop()
  }
}

async function takeTurn(ours: Standalone, floor: FloorProcess, msMax: number): Promise<Turn> {
  const driver = await prepareCreates({ port: ours.port, linksMax: LINKS_MAX, msMax })
  const groupsBefore = await groupsOf(ours)
  const beforeUs = cpuUsOf(ours.pid)
  const driven = await driver.run()
  const cpuUs = cpuUsOf(ours.pid) - beforeUs
  const groupsAfter = await groupsOf(ours)
  const groups = groupsAfter.count - groupsBefore.count
  const group = (groupsAfter.sum - groupsBefore.sum) / groups
  const task: FloorTask = { creates: driven.responses, group }
  const span = (await floor.request(task)) as FloorSpan
  return { ours: { ...driven, cpuUs, group }, floor: span }
}

/** Operations and transactions so far, from the service's metrics. */
async function groupsOf({ adminUrl }: Standalone): Promise<{ sum: number; count: number }> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const value = (suffix: string) =>
    Number(new RegExp(`^curtail_sqlite_group_operations_${suffix} (\\S+)$`, 'm').exec(text)?.[1])
  return { sum: value('sum'), count: value('count') }
}

/** The ratio of durable creates per second: standalone to the floor. */
function ratioOf({ ours, floor }: Turn): number {
  return floor.elapsedMs / ours.elapsedMs // same number of creates
}

function reportOf(turns: readonly Turn[], conditions: Report['conditions']): Report {
  const median = (figure: (turn: Turn) => number) => medianOf(turns.map(figure))
  const ratio = median(ratioOf)
  const cpuRatio = median(({ ours, floor }) => floor.cpuUs / ours.cpuUs)
  const oursUs = median(({ ours }) => ours.cpuUs / ours.responses)
  const floorUs = median(({ ours, floor }) => floor.cpuUs / ours.responses)
  const each = turns.map((turn) => ratioOf(turn).toFixed(2)).join(' ')
  return {
    bench: 'create',
    conditions: { ...conditions, 'mean group': median(({ ours }) => ours.group).toFixed(1) },
    headings: ['', 'creates/s', 'CPU µs per create', 'creates per CPU-second', 'p50 ms', 'p99 ms'],
    rows: [
      [
        'node:sqlite alone',
        median(({ ours, floor }) => (ours.responses / floor.elapsedMs) * 1000).toFixed(0),
        floorUs.toFixed(1),
        (1e6 / floorUs).toFixed(0),
        '',
        '',
      ],
      [
        'standalone, HTTP',
        median(({ ours }) => (ours.responses / ours.elapsedMs) * 1000).toFixed(0),
        oursUs.toFixed(1),
        (1e6 / oursUs).toFixed(0),
        median(({ ours }) => ours.p50Ms).toFixed(2),
        median(({ ours }) => ours.p99Ms).toFixed(2),
      ],
    ],
    verdict: [
      `Ratio of durable creates per second, standalone to node:sqlite alone, median of ` +
        `${turns.length}: ${ratio.toFixed(3)} (${each}); goal at least ${GOAL}: ` +
        (ratio >= GOAL ? 'reached' : 'NOT reached'),
      `Ratio of durable creates per CPU-second: ${cpuRatio.toFixed(3)} (no goal)`,
    ],
    figures: { ratio, cpuRatio, goal: GOAL, turns },
  }
}
