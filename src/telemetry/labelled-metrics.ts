// Counters and histograms for prom-client's registry whose series are looked up once, not at every
// use: prom-client builds a string of the labels each time, a tenth of a redirect's CPU time.
import type { Metric, Registry } from 'prom-client'

/** The labels of a series, by name. */
export type Labels<L extends string> = Readonly<Partial<Record<L, string | number>>>

/** Options of a metric; the metric registers itself. */
export interface MetricOptions<L extends string> {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly L[]
  readonly registry: Registry
}

/** A metric in a registry, which uses only its name and `get`. */
export abstract class RegisteredMetric<L extends string> {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly L[]

  constructor({ name, help, labelNames = [], registry }: MetricOptions<L>) {
    this.name = name
    this.help = help
    this.labelNames = labelNames
    registry.registerMetric(this as unknown as Metric)
  }

  /** The metric with these values, as the registry renders it. */
  protected rendered<V>(type: 'counter' | 'histogram', values: readonly V[]) {
    const { name, help } = this
    return Promise.resolve({ name, help, type, values, aggregator: 'sum' })
  }
}

/** The series of one metric, each created when its labels are first used. */
class SeriesMap<L extends string, S> {
  readonly #labelNames: readonly L[]
  readonly #create: () => S
  readonly #byKey = new Map<string, { readonly labels: Labels<L>; readonly series: S }>()

  constructor(labelNames: readonly L[], create: () => S) {
    this.#labelNames = labelNames
    this.#create = create
    if (labelNames.length === 0) this.find([]) // rendered from the start, at zero
  }

  find(values: readonly (string | number | undefined)[]): S {
    const key = values.join('\n')
    const existing = this.#byKey.get(key)
    if (existing !== undefined) return existing.series
    const named = this.#labelNames.map((name, i) => [name, String(values[i])] as const)
    const created = { labels: Object.fromEntries(named) as Labels<L>, series: this.#create() }
    this.#byKey.set(key, created)
    return created.series
  }

  findBy(labels: Labels<L>): S {
    return this.find(this.#labelNames.map((name) => labels[name]))
  }

  list() {
    return [...this.#byKey.values()]
  }
}

/** A counter. */
export class LabelledCounter<L extends string = never> extends RegisteredMetric<L> {
  readonly #series = new SeriesMap(this.labelNames, () => ({
    value: 0,
    inc(by = 1) {
      this.value += by
    },
  }))

  /** The series of these label values, in the order of the label names: for hot paths. */
  labels(...values: readonly string[]): { inc(by?: number): void } {
    return this.#series.find(values)
  }

  /** For cold paths: increments a series by its labels, or the only series by a number. */
  inc(labelsOrCount: Labels<L> | number, by = 1): void {
    if (typeof labelsOrCount === 'number') this.#series.find([]).inc(labelsOrCount)
    else this.#series.findBy(labelsOrCount).inc(by)
  }

  /** The metric as the registry renders it. */
  get() {
    const values = this.#series.list().map(({ labels, series: { value } }) => ({ labels, value }))
    return this.rendered('counter', values)
  }
}

/** Options of a histogram. */
interface HistogramOptions<L extends string> extends MetricOptions<L> {
  readonly buckets: readonly number[]
  /** The active trace, for exemplars; undefined without one, or while tracing is off. */
  readonly currentTraceId?: (() => string | undefined) | undefined
}

/** A histogram. A bucket's exemplar is its last observation within a trace. */
export class LabelledHistogram<L extends string = never> extends RegisteredMetric<L> {
  readonly #bounds: readonly number[]
  readonly #series: SeriesMap<L, Distribution>

  constructor(options: HistogramOptions<L>) {
    super(options)
    this.#bounds = options.buckets
    this.#series = new SeriesMap(this.labelNames, () => new Distribution(options))
  }

  /** The series of these label values, in the order of the label names: for hot paths. */
  labels(...values: readonly string[]): { observe(value: number): void } {
    return this.#series.find(values)
  }

  /** Observes a value, for a histogram without labels. */
  observe(value: number): void {
    this.#series.find([]).observe(value)
  }

  /** The metric as the registry renders it. */
  get() {
    const { name } = this
    const values = this.#series.list().flatMap(({ labels, series }) => {
      const counts = series.cumulative()
      const bucket = (le: string | number, value: number, bucketIndex: number) => {
        const exemplar = series.exemplar(bucketIndex)
        const sample = { metricName: `${name}_bucket`, labels: { le, ...labels }, value }
        return exemplar === undefined ? sample : { ...sample, exemplar }
      }
      return [
        ...this.#bounds.map((bound, i) => bucket(bound, counts[i] ?? 0, i)),
        bucket('+Inf', series.count, this.#bounds.length),
        { metricName: `${name}_sum`, labels, value: series.sum },
        { metricName: `${name}_count`, labels, value: series.count },
      ]
    })
    return this.rendered('histogram', values)
  }
}

/** One observation and its trace. */
interface Exemplar {
  readonly traceId: string
  readonly value: number
  readonly atMs: number
}

/** The bucket counts of one series. */
class Distribution {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  readonly #currentTraceId: HistogramOptions<never>['currentTraceId']
  /** By bucket index, including +Inf; undefined until the first exemplar. */
  #exemplars: (Exemplar | undefined)[] | undefined
  sum = 0
  count = 0

  constructor({
    buckets,
    currentTraceId,
  }: Pick<HistogramOptions<never>, 'buckets' | 'currentTraceId'>) {
    this.#bounds = buckets
    this.#counts = buckets.map(() => 0)
    this.#currentTraceId = currentTraceId
  }

  observe(value: number): void {
    this.sum += value
    this.count++
    let i = 0
    while (i < this.#bounds.length && value > (this.#bounds[i] ?? Infinity)) i++
    if (i < this.#counts.length) this.#counts[i] = (this.#counts[i] ?? 0) + 1
    const traceId = this.#currentTraceId?.()
    if (traceId !== undefined) (this.#exemplars ??= [])[i] = { traceId, value, atMs: Date.now() }
  }

  cumulative(): number[] {
    let total = 0
    return this.#counts.map((count) => (total += count))
  }

  /** The exemplar of a bucket, in prom-client's form. */
  exemplar(bucketIndex: number) {
    const exemplar = this.#exemplars?.[bucketIndex]
    if (exemplar === undefined) return undefined
    const { traceId, value, atMs } = exemplar
    return { labelSet: { trace_id: traceId }, value, timestamp: atMs / 1000 }
  }
}
