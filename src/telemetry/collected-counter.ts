// A counter for prom-client's registry that reads its series from elsewhere on each scrape: nothing
// is counted twice, and a series that is deleted there disappears here.
import { type Labels, RegisteredMetric } from './labelled-metrics.ts'

/** The current value of one series. */
export interface Sample<L extends string> {
  readonly labels: Labels<L>
  readonly value: number
}

/** A counter that is collected on each scrape. */
export class CollectedCounter<L extends string = never> extends RegisteredMetric<L> {
  #source: () => Iterable<Sample<L>> = () => []

  /** Sets the source of the series, each of which must have different labels. */
  collectFrom(source: () => Iterable<Sample<L>>): void {
    this.#source = source
  }

  /** The metric as the registry renders it. */
  get() {
    return this.rendered('counter', [...this.#source()])
  }
}
