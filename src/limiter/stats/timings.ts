// Times of calls: their number, sum and greatest, and the last few hundred themselves. Observing
// one writes a few numbers and allocates nothing.

/** The times since the last reading, of which only the last are there. */
export interface TimingSample {
  readonly values: readonly number[]
  /** How many there were. */
  readonly seen: number
}

/** What `summary` says, in milliseconds. */
export interface TimingSummary {
  readonly count: number
  readonly mean: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

const KEPT_MAX = 512

/** Times of one kind, in milliseconds. */
export class Timings {
  count = 0
  #sum = 0
  #max = 0
  readonly #kept = new Float64Array(KEPT_MAX)

  /** Notes one. */
  observe(milliseconds: number): void {
    this.#kept[this.count % KEPT_MAX] = milliseconds
    this.count++
    this.#sum += milliseconds
    if (milliseconds > this.#max) this.#max = milliseconds
  }

  /** Those that came after the first `count` ones, oldest first. */
  since(count: number): TimingSample {
    const seen = Math.max(0, this.count - count)
    const kept = Math.min(seen, KEPT_MAX)
    const from = this.count - kept
    return {
      seen,
      values: Array.from({ length: kept }, (_, i) => this.#kept[(from + i) % KEPT_MAX] ?? 0),
    }
  }

  /** All of them in a few numbers; the percentiles are of the last 512. */
  summary(): TimingSummary {
    const sorted = [...this.since(0).values].sort((a, b) => a - b)
    const rank = (part: number) => sorted[Math.ceil(part * sorted.length) - 1] ?? 0
    const mean = this.count === 0 ? 0 : this.#sum / this.count
    return { count: this.count, mean, p50: rank(0.5), p99: rank(0.99), max: this.#max }
  }
}
