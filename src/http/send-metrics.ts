// The page that Prometheus reads: OpenMetrics where a scraper puts it first, as it carries
// exemplars, and Prometheus' own text for everybody else.
import type { IncomingMessage } from 'node:http'
import type { RequestHandler } from 'express'
import Negotiator from 'negotiator'
import type { Registry } from 'prom-client'
import { OPEN_METRICS_TYPE, openMetricsOf } from '../telemetry/open-metrics.ts'

const OPEN_METRICS = 'application/openmetrics-text'
const ALSO_TEXT = ['text/plain', 'text/*', '*/*']

/** Answers with what `registry` shows now. */
export function sendMetrics(registry: Registry): RequestHandler {
  return async (req, res) => {
    res.vary('Accept')
    if (prefersOpenMetrics(req)) res.type(OPEN_METRICS_TYPE).send(await openMetricsOf(registry))
    else res.type(registry.contentType).send(await registry.metrics())
  }
}

/** Scrapers ask for versions of it in turn; it is told by its name alone. */
function prefersOpenMetrics(req: IncomingMessage): boolean {
  const wanted = new Negotiator(req).mediaTypes()
  return wanted.find((type) => type === OPEN_METRICS || ALSO_TEXT.includes(type)) === OPEN_METRICS
}
