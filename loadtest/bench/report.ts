// The report of a benchmark: its conditions, medians and verdict, and all figures.
import { cpus, loadavg } from 'node:os'
import { renderTable } from '../../src/process/table.ts'

/** The report of one benchmark. */
export interface Report {
  readonly bench: string
  readonly conditions: Readonly<Record<string, string | number>>
  readonly headings: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Sentences: each ratio, and whether its goal is reached. */
  readonly verdict: readonly string[]
  /** Every figure, for programs. */
  readonly figures: unknown
}

/** The options of a benchmark. */
export interface BenchOptions {
  readonly repetitions: number
  /** Duration of one measured span. */
  readonly seconds: number
  readonly log: (line: string) => void
}

/** The conditions that every benchmark reports. */
export function conditionsOf(): Record<string, string | number> {
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    'load average before': loadavg()[0]?.toFixed(2) ?? '?',
  }
}

/** Additional conditions of benchmarks with repetitions. */
export function repetitionOf(options: BenchOptions): Record<string, string | number> {
  return {
    repetitions: options.repetitions,
    'seconds each': options.seconds,
    'CPU time': 'user and system of all threads, from /proc/PID/stat',
  }
}

/** Renders the report for a terminal. */
export function renderReport(report: Report): string {
  const conditions = Object.entries(report.conditions).map(([name, value]) => `${name} ${value}`)
  return [
    `bench ${report.bench}: ${conditions.join('; ')}\n\n`,
    renderTable(report.headings, report.rows),
    '\n',
    ...report.verdict.map((line) => `${line}\n`),
  ].join('')
}

/** Returns quantiles of the first `count` figures, which it sorts in place; NaN without figures. */
export function quantilesOf(figures: Float64Array, count: number): (q: number) => number {
  const sorted = figures.subarray(0, count).sort()
  return (q) => sorted[Math.floor(q * (sorted.length - 1))] ?? Number.NaN
}

/** The median. */
export function medianOf(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}
