// A counter for prom-client's registry whose series are kept elsewhere and asked for when the
// registry is read: nothing is counted twice, and a series that is dropped there is gone here.
import type { Metric } from 'prom-client'
import type { Labels, MetricOptions } from './labelled-metrics.ts'

/** One series as it stands. */
export interface Sample<L extends string> {
  readonly labels: Labels<L>
  readonly value: number
}

/** A counter that is asked for. */
export class CollectedCounter<L extends string = never> {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly L[]
  #source: () => Iterable<Sample<L>> = () => []

  constructor({ name, help, labelNames = [], registry }: MetricOptions<L>) {
    this.name = name
    this.help = help
    this.labelNames = labelNames
    registry.registerMetric(this as unknown as Metric) // of which the registry uses name and get()
  }

  /** Says where its series are kept; no two of them may have the same labels. */
  collectFrom(source: () => Iterable<Sample<L>>): void {
    this.#source = source
  }

  /** What the registry shows. */
  get() {
    const { name, help } = this
    return Promise.resolve({
      name,
      help,
      type: 'counter',
      values: [...this.#source()],
      aggregator: 'sum',
    })
  }
}
