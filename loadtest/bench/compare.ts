// Compares the CPU time of a service with that of its floor, under the same load in turns on one
// core.
import { type LoadFigures, type Load, prepareLoad } from './drive.ts'
import { cpuUsOf } from './process-figures.ts'
import { type BenchOptions, medianOf, type Report } from './report.ts'

/** A process and its load. */
export interface Contender {
  readonly name: string
  readonly pid: number
  readonly load: Omit<Load, 'msMax'>
  /** Called before each turn, outside its figures. */
  readonly prepare?: () => Promise<void>
}

/** The figures of one turn of a contender. */
export interface Span extends LoadFigures {
  readonly cpuUs: number
}

/** The parameters of a comparison. */
interface Comparison {
  readonly bench: string
  readonly goal: number
  readonly floor: Contender
  readonly ours: Contender
  readonly options: BenchOptions
  readonly conditions: Report['conditions']
  /** Duration of the load before the first turn. @default WARM_UP_MS */
  readonly warmUpMs?: number
  /** Called after each turn. */
  readonly onSpan?: (contender: Contender, span: Span) => void
}

const WARM_UP_MS = 3000

/** Runs both in turns, each time in reverse order, so that drift of the machine affects both. */
export async function compare(comparison: Comparison): Promise<Report> {
  const { floor, ours, options, onSpan, warmUpMs = WARM_UP_MS } = comparison
  const spans = new Map<Contender, Span[]>([
    [floor, []],
    [ours, []],
  ])
  for (const contender of spans.keys()) await measure(contender, warmUpMs)
  for (let repetition = 0; repetition < options.repetitions; repetition++) {
    for (const contender of repetition % 2 === 0 ? [floor, ours] : [ours, floor]) {
      const span = await measure(contender, options.seconds * 1000)
      spans.get(contender)?.push(span)
      onSpan?.(contender, span)
      options.log(`${contender.name}: ${cpuUsEach(span).toFixed(2)} CPU µs per request`)
    }
  }
  return reportOf(comparison, spans)
}

async function measure({ pid, load, prepare }: Contender, msMax: number): Promise<Span> {
  await prepare?.()
  const driver = await prepareLoad({ ...load, msMax })
  const beforeUs = cpuUsOf(pid)
  const driven = await driver.run()
  return { ...driven, cpuUs: cpuUsOf(pid) - beforeUs }
}

function cpuUsEach({ cpuUs, responses }: Span): number {
  return cpuUs / responses
}

function reportOf(
  { bench, goal, floor, ours, conditions }: Comparison,
  spans: ReadonlyMap<Contender, readonly Span[]>,
): Report {
  const of = (contender: Contender) => spans.get(contender) ?? []
  const ratios = of(floor).map((span, i) => {
    const other = of(ours)[i]
    return other === undefined ? Number.NaN : cpuUsEach(span) / cpuUsEach(other)
  })
  const ratio = medianOf(ratios)
  const rowOf = (contender: Contender) => {
    const median = (figure: (span: Span) => number) => medianOf(of(contender).map(figure))
    return [
      contender.name,
      median(cpuUsEach).toFixed(2),
      (1e6 / median(cpuUsEach)).toFixed(0),
      median(({ p50Ms }) => p50Ms).toFixed(2),
      median(({ p99Ms }) => p99Ms).toFixed(2),
    ]
  }
  return {
    bench,
    conditions,
    headings: ['server', 'CPU µs per request', 'requests per CPU-second', 'p50 ms', 'p99 ms'],
    rows: [rowOf(floor), rowOf(ours)],
    verdict: [
      `Ratio of requests per CPU-second, ${ours.name} to ${floor.name}, median of ` +
        `${ratios.length}: ${ratio.toFixed(3)} ` +
        `(${ratios.map((each) => each.toFixed(2)).join(' ')}); ` +
        `goal at least ${goal}: ${ratio >= goal ? 'reached' : 'NOT reached'}`,
    ],
    figures: {
      ratio,
      ratios,
      goal,
      servers: [floor, ours].map((contender) => ({ name: contender.name, spans: of(contender) })),
    },
  }
}
