// The page that Prometheus scrapes: OpenMetrics, which carries exemplars, for scrapers that prefer
// it, and Prometheus' text format for all other clients.
import type { IncomingMessage } from 'node:http'
import type { RequestHandler } from 'express'
import Negotiator from 'negotiator'
import type { Registry } from 'prom-client'
import { OPEN_METRICS_TYPE, openMetricsOf } from '../telemetry/open-metrics.ts'

const OPEN_METRICS = 'application/openmetrics-text'
const TEXT_TYPES = ['text/plain', 'text/*', '*/*']

/** Responds with the current metrics of `registry`. */
export function sendMetrics(registry: Registry): RequestHandler {
  return async (req, res) => {
    res.vary('Accept')
    if (prefersOpenMetrics(req)) res.type(OPEN_METRICS_TYPE).send(await openMetricsOf(registry))
    else res.type(registry.contentType).send(await registry.metrics())
  }
}

/** Scrapers list several versions of OpenMetrics; its name alone decides. */
function prefersOpenMetrics(req: IncomingMessage): boolean {
  const wanted = new Negotiator(req).mediaTypes()
  return wanted.find((type) => type === OPEN_METRICS || TEXT_TYPES.includes(type)) === OPEN_METRICS
}
