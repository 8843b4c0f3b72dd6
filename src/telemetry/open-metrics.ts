// A registry as OpenMetrics text, in which alone observations can name their traces. prom-client
// writes it, of views: its own way there would take `_total` off the names of metrics for good.
import { type OpenMetricsContentType, Registry } from 'prom-client'

/** What a metric shows of itself, of which only the name and type are changed. */
interface Shown {
  readonly name: string
  readonly type: string
}
/** A metric, as far as a registry reads it. */
interface Readable {
  readonly name: string
  readonly get: () => Promise<Shown>
}

const TOTAL = '_total'

/** The media type of the text. */
export const OPEN_METRICS_TYPE = Registry.OPENMETRICS_CONTENT_TYPE

/**
 * What `registry` shows now. Every series has the name and labels that it has in Prometheus' own
 * format: a bound stays `1` and does not become `1.0`, by which Prometheus 2 would know it anew.
 */
export async function openMetricsOf(registry: Registry): Promise<string> {
  const page = new Registry<OpenMetricsContentType>()
  page.setContentType(OPEN_METRICS_TYPE)
  const metrics = registry.getMetricsAsArray() as unknown as readonly Readable[]
  for (const metric of metrics) {
    const { name } = metric
    const view: Readable = { name, get: async () => shownAs(await metric.get()) }
    page.registerMetric(view as unknown as Parameters<Registry['registerMetric']>[0])
  }
  return page.metrics()
}

/** A counter's family is named without `_total`; one whose series lack it cannot be called one. */
function shownAs(shown: Shown): Shown {
  if (shown.type !== 'counter') return shown
  if (!shown.name.endsWith(TOTAL)) return { ...shown, type: 'unknown' }
  return { ...shown, name: shown.name.slice(0, -TOTAL.length) }
}
