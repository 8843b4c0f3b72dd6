// Counters and histograms for prom-client's registry whose series are found once, not at every
// use: prom-client's own find it by a text of its labels each time, a tenth of a redirect's CPU.
import type { Metric, Registry } from 'prom-client'

/** The labels of a series by their names. */
export type Labels<L extends string> = Readonly<Partial<Record<L, string | number>>>

/** What a metric is called and says; it registers itself. */
export interface MetricOptions<L extends string> {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly L[]
  readonly registry: Registry
}

/** The series of one metric, each made when its labels are first seen. */
class SeriesOf<L extends string, S> {
  readonly #labelNames: readonly L[]
  readonly #make: () => S
  readonly #byKey = new Map<string, { readonly labels: Labels<L>; readonly series: S }>()

  constructor(labelNames: readonly L[], make: () => S) {
    this.#labelNames = labelNames
    this.#make = make
    if (labelNames.length === 0) this.find([]) // shown from the start, at zero
  }

  find(values: readonly (string | number | undefined)[]): S {
    const key = values.join('\n')
    const known = this.#byKey.get(key)
    if (known !== undefined) return known.series
    const named = this.#labelNames.map((name, i) => [name, String(values[i])] as const)
    const made = { labels: Object.fromEntries(named) as Labels<L>, series: this.#make() }
    this.#byKey.set(key, made)
    return made.series
  }

  findBy(labels: Labels<L>): S {
    return this.find(this.#labelNames.map((name) => labels[name]))
  }

  list() {
    return [...this.#byKey.values()]
  }
}

/** A counter. */
export class LabelledCounter<L extends string = never> {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly L[]
  readonly #series: SeriesOf<L, { value: number; inc(by?: number): void }>

  constructor({ name, help, labelNames = [], registry }: MetricOptions<L>) {
    this.name = name
    this.help = help
    this.labelNames = labelNames
    this.#series = new SeriesOf(labelNames, () => ({
      value: 0,
      inc(by = 1) {
        this.value += by
      },
    }))
    registry.registerMetric(this as unknown as Metric) // of which the registry uses name and get()
  }

  /** The series of these label values, in the order of their names: for where it is used often. */
  labels(...values: readonly string[]): { inc(by?: number): void } {
    return this.#series.find(values)
  }

  /** Counts where it happens seldom: one of a series, or so many of the metric without labels. */
  inc(what: Labels<L> | number, by = 1): void {
    if (typeof what === 'number') this.#series.find([]).inc(what)
    else this.#series.findBy(what).inc(by)
  }

  /** What the registry shows. */
  get() {
    const values = this.#series.list().map(({ labels, series: { value } }) => ({ labels, value }))
    const { name, help } = this
    return Promise.resolve({ name, help, type: 'counter', values, aggregator: 'sum' })
  }
}

/** How a histogram is made. */
interface HistogramOptions<L extends string> extends MetricOptions<L> {
  readonly buckets: readonly number[]
  /** The trace under way, for exemplars; undefined where there is none, or nothing is traced. */
  readonly traceIdNow?: (() => string | undefined) | undefined
}

/** A histogram. Where traces are told, the last observation of one in a bucket is its exemplar. */
export class LabelledHistogram<L extends string = never> {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly L[]
  readonly #bounds: readonly number[]
  readonly #series: SeriesOf<L, Distribution>

  constructor(options: HistogramOptions<L>) {
    this.name = options.name
    this.help = options.help
    this.labelNames = options.labelNames ?? []
    this.#bounds = options.buckets
    this.#series = new SeriesOf(this.labelNames, () => new Distribution(options))
    options.registry.registerMetric(this as unknown as Metric)
  }

  /** The series of these label values, in the order of their names: for where it is used often. */
  labels(...values: readonly string[]): { observe(value: number): void } {
    return this.#series.find(values)
  }

  /** Observes a value of the metric without labels. */
  observe(value: number): void {
    this.#series.find([]).observe(value)
  }

  /** What the registry shows. */
  get() {
    const { name, help } = this
    const values = this.#series.list().flatMap(({ labels, series }) => {
      const counts = series.cumulative()
      const bucket = (le: string | number, value: number, place: number) => {
        const exemplar = series.exemplar(place)
        const shown = { metricName: `${name}_bucket`, labels: { le, ...labels }, value }
        return exemplar === undefined ? shown : { ...shown, exemplar }
      }
      return [
        ...this.#bounds.map((bound, i) => bucket(bound, counts[i] ?? 0, i)),
        bucket('+Inf', series.count, this.#bounds.length),
        { metricName: `${name}_sum`, labels, value: series.sum },
        { metricName: `${name}_count`, labels, value: series.count },
      ]
    })
    return Promise.resolve({ name, help, type: 'histogram', values, aggregator: 'sum' })
  }
}

/** One observation, and the trace that it was made in. */
interface Exemplar {
  readonly traceId: string
  readonly value: number
  readonly atMs: number
}

/** Values of one series by the bounds that they lie within. */
class Distribution {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  readonly #traceIdNow: HistogramOptions<never>['traceIdNow']
  /** By the place of their bucket, the last one's too; the table stands only where one was kept. */
  #exemplars: (Exemplar | undefined)[] | undefined
  sum = 0
  count = 0

  constructor({ buckets, traceIdNow }: Pick<HistogramOptions<never>, 'buckets' | 'traceIdNow'>) {
    this.#bounds = buckets
    this.#counts = buckets.map(() => 0)
    this.#traceIdNow = traceIdNow
  }

  observe(value: number): void {
    this.sum += value
    this.count++
    let i = 0
    while (i < this.#bounds.length && value > (this.#bounds[i] ?? Infinity)) i++
    if (i < this.#counts.length) this.#counts[i] = (this.#counts[i] ?? 0) + 1
    const traceId = this.#traceIdNow?.()
    if (traceId !== undefined) (this.#exemplars ??= [])[i] = { traceId, value, atMs: Date.now() }
  }

  cumulative(): number[] {
    let total = 0
    return this.#counts.map((count) => (total += count))
  }

  /** The exemplar of the bucket at this place, as prom-client writes it. */
  exemplar(place: number) {
    const kept = this.#exemplars?.[place]
    if (kept === undefined) return undefined
    const { traceId, value, atMs } = kept
    return { labelSet: { trace_id: traceId }, value, timestamp: atMs / 1000 }
  }
}
