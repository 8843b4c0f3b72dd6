// Makes metrics of every kind in one registry, for the parts of the catalogue.
import { Gauge, type Registry } from 'prom-client'
import { CollectedCounter } from './collected-counter.ts'
import { LabelledCounter, LabelledHistogram } from './labelled-metrics.ts'
import { spansNow } from './spans.ts'

/** What kind of a histogram it is. */
interface HistogramShape<L extends string> {
  readonly buckets: readonly number[]
  readonly labelNames?: readonly L[]
  /** Whether each observation is made within the request that it is of, and names its trace. */
  readonly hasExemplars?: boolean
}

/** Makers of metrics in one registry. */
export function makersOf(registry: Registry) {
  const registers = [registry]
  const spans = spansNow()
  const traceIdNow = spans && (() => spans.idsNow()?.trace_id)
  return {
    counter: <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
      new LabelledCounter<L>({ name, help, labelNames, registry }),
    collected: <L extends string = never>(
      name: string,
      help: string,
      labelNames: readonly L[] = [],
    ) => new CollectedCounter<L>({ name, help, labelNames, registry }),
    gauge: <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
      new Gauge<L>({ name, help, labelNames, registers }),
    histogram: <L extends string>(
      name: string,
      help: string,
      { hasExemplars = false, ...shape }: HistogramShape<L>,
    ) => {
      const traced = { traceIdNow: hasExemplars ? traceIdNow : undefined }
      return new LabelledHistogram<L>({ name, help, ...shape, ...traced, registry })
    },
  }
}

/** What `makersOf` gives. */
export type Makers = ReturnType<typeof makersOf>
