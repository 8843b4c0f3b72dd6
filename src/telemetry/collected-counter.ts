// A counter for prom-client's registry that reads its series from elsewhere on each scrape: nothing
// is counted twice, and a series that is deleted there disappears here.
import type { Metric } from 'prom-client'
import type { Labels, MetricOptions } from './labelled-metrics.ts'

/** The current value of one series. */
export interface Sample<L extends string> {
  readonly labels: Labels<L>
  readonly value: number
}

/** A counter that is collected on each scrape. */
export class CollectedCounter<L extends string = never> {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly L[]
  #source: () => Iterable<Sample<L>> = () => []

  constructor({ name, help, labelNames = [], registry }: MetricOptions<L>) {
    this.name = name
    this.help = help
    this.labelNames = labelNames
    registry.registerMetric(this as unknown as Metric) // the registry uses only name and get()
  }

  /** Sets the source of the series; no two of them may have the same labels. */
  collectFrom(source: () => Iterable<Sample<L>>): void {
    this.#source = source
  }

  /** The metric as the registry renders it. */
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
