// Creates metrics of every kind in one registry, for the groups of the catalogue.
import { Gauge, type Registry } from 'prom-client'
import { CollectedCounter } from './collected-counter.ts'
import { LabelledCounter, LabelledHistogram } from './labelled-metrics.ts'
import { installedSpans } from './spans.ts'

/** Options of a histogram besides its name and help. */
interface HistogramShape<L extends string> {
  readonly buckets: readonly number[]
  readonly labelNames?: readonly L[]
  /** Whether each observation occurs within its request: the exemplar is then the active trace. */
  readonly hasExemplars?: boolean
}

/** Creates a factory of metrics in one registry. */
export function createMetricFactory(registry: Registry) {
  const registers = [registry]
  const spans = installedSpans()
  const currentTraceId = spans && (() => spans.currentIds()?.trace_id)
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
      const traced = { currentTraceId: hasExemplars ? currentTraceId : undefined }
      return new LabelledHistogram<L>({ name, help, ...shape, ...traced, registry })
    },
  }
}

/** Creates metrics in one registry. */
export type MetricFactory = ReturnType<typeof createMetricFactory>
