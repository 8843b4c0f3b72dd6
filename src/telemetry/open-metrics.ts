// Renders a registry in the OpenMetrics format, the only one with exemplars. prom-client renders
// views of the metrics: on the metrics themselves it would permanently strip `_total` from their
// names.
import { type OpenMetricsContentType, Registry } from 'prom-client'

/** A metric's data; only the name and type are changed. */
interface MetricData {
  readonly name: string
  readonly type: string
}
/** The interface of a metric that a registry uses. */
interface MetricView {
  readonly name: string
  readonly get: () => Promise<MetricData>
}

const TOTAL = '_total'

/** The media type of OpenMetrics. */
export const OPEN_METRICS_TYPE = Registry.OPENMETRICS_CONTENT_TYPE

/**
 * Renders `registry`. Every series has the same name and labels as in the Prometheus format: a
 * bound stays `1` instead of `1.0`, which Prometheus 2 would store as another series.
 */
export async function openMetricsOf(registry: Registry): Promise<string> {
  const page = new Registry<OpenMetricsContentType>()
  page.setContentType(OPEN_METRICS_TYPE)
  const metrics = registry.getMetricsAsArray() as unknown as readonly MetricView[]
  for (const metric of metrics) {
    const { name } = metric
    const view: MetricView = { name, get: async () => toOpenMetrics(await metric.get()) }
    page.registerMetric(view as unknown as Parameters<Registry['registerMetric']>[0])
  }
  return page.metrics()
}

/** A counter's family has no `_total`; a counter whose series lack it has an unknown type. */
function toOpenMetrics(data: MetricData): MetricData {
  if (data.type !== 'counter') return data
  if (!data.name.endsWith(TOTAL)) return { ...data, type: 'unknown' }
  return { ...data, name: data.name.slice(0, -TOTAL.length) }
}
