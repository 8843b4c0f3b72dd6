// What a benchmark says: its conditions, its figures by repetition, their medians, and the verdict.
import { cpus, loadavg } from 'node:os'
import { renderTable } from '../../src/process/table.ts'

/** The outcome of one benchmark. */
export interface Report {
  readonly bench: string
  readonly conditions: Readonly<Record<string, string | number>>
  readonly headings: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Sentences: which ratio is meant, and whether the goal is reached. */
  readonly verdict: readonly string[]
  /** Every figure, for programs. */
  readonly figures: unknown
}

/** How a benchmark is to be run. */
export interface BenchOptions {
  readonly repetitions: number
  /** Length of one measured span of one server. */
  readonly seconds: number
  readonly log: (line: string) => void
}

/** What every benchmark tells of the machine. */
export function conditionsOf(): Record<string, string | number> {
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    'load average before': loadavg()[0]?.toFixed(2) ?? '?',
  }
}

/** What the benchmarks that repeat tell besides. */
export function repetitionOf(options: BenchOptions): Record<string, string | number> {
  return {
    repetitions: options.repetitions,
    'seconds each': options.seconds,
    'CPU time': 'user and system of all threads, from /proc/PID/stat',
  }
}

/** The report as text. */
export function renderReport(report: Report): string {
  const conditions = Object.entries(report.conditions).map(([name, value]) => `${name} ${value}`)
  return [
    `bench ${report.bench}: ${conditions.join('; ')}\n\n`,
    renderTable(report.headings, report.rows),
    '\n',
    ...report.verdict.map((line) => `${line}\n`),
  ].join('')
}

/** Reads quantiles of the first `count` figures, which it sorts in place; of none, NaN. */
export function quantilesOf(figures: Float64Array, count: number): (q: number) => number {
  const sorted = figures.subarray(0, count).sort()
  return (q) => sorted[Math.floor(q * (sorted.length - 1))] ?? Number.NaN
}

/** The middle of some figures. */
export function medianOf(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}
