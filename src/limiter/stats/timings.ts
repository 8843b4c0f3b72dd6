// Durations of calls: their count, sum and maximum, and the last 512 values. Observing a value
// writes a few numbers and allocates nothing.

/** The times since a previous sample, of which at most 512 are kept. */
export interface TimingSample {
  readonly values: readonly number[]
  /** Number of observed times. */
  readonly total: number
}

/** The result of `summary`, in milliseconds. */
export interface TimingSummary {
  readonly count: number
  readonly mean: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

const KEPT_MAX = 512

/** Durations of one kind, in milliseconds. */
export class Timings {
  count = 0
  #sum = 0
  #max = 0
  readonly #kept = new Float64Array(KEPT_MAX)

  /** Records a time. */
  observe(milliseconds: number): void {
    this.#kept[this.count % KEPT_MAX] = milliseconds
    this.count++
    this.#sum += milliseconds
    if (milliseconds > this.#max) this.#max = milliseconds
  }

  /** The times after the first `count` ones, oldest first. */
  since(count: number): TimingSample {
    const total = Math.max(0, this.count - count)
    const kept = Math.min(total, KEPT_MAX)
    const from = this.count - kept
    return {
      total,
      values: Array.from({ length: kept }, (_, i) => this.#kept[(from + i) % KEPT_MAX] ?? 0),
    }
  }

  /** Summarizes all times; the percentiles are of the last 512. */
  summary(): TimingSummary {
    const sorted = [...this.since(0).values].sort((a, b) => a - b)
    const quantile = (q: number) => sorted[Math.ceil(q * sorted.length) - 1] ?? 0
    const mean = this.count === 0 ? 0 : this.#sum / this.count
    return { count: this.count, mean, p50: quantile(0.5), p99: quantile(0.99), max: this.#max }
  }
}
