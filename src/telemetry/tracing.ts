// The OpenTelemetry preload, given to every start command by --import, before anything else loads.
// Does nothing, and loads nothing, unless OTEL_EXPORTER_OTLP_ENDPOINT (or that of traces) is set.
// The edge samples: a request whose traceparent does not say so gets no span and costs nothing.
import { isMainThread } from 'node:worker_threads'
import { within } from '../resilience/deadline.ts'
import { installSpans } from './spans.ts'

/** How long the end waits for the collector; the SDK itself would try for many seconds. */
const STOP_MS_MAX = 1500

let shutdown: (() => Promise<void>) | undefined

const endpoint =
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']

const isDisabled = process.env['OTEL_SDK_DISABLED'] === 'true'

// Threads run this preload too, and serve no requests.
if (isMainThread && endpoint !== undefined && endpoint !== '' && !isDisabled) await startTracing()

async function startTracing(): Promise<void> {
  const { NodeSDK } = await import('@opentelemetry/sdk-node')
  const { createSpans } = await import('./open-telemetry.ts')
  // Who names no trace is sampled only where the operator says how.
  const isSamplerAsked = process.env['OTEL_TRACES_SAMPLER'] !== undefined
  process.env['OTEL_TRACES_SAMPLER'] ??= 'parentbased_always_off'
  // Everything else is told by the standard OTEL_* names, which the SDK reads itself. Nothing is
  // patched: spans are made where requests are answered and others are asked (spans.ts).
  const sdk = new NodeSDK({
    ...(process.env['OTEL_SERVICE_NAME'] === undefined && { serviceName: 'curtail' }),
  })
  sdk.start()
  installSpans(createSpans({ isSamplerAsked }))
  shutdown = async () => {
    await sdk.shutdown()
  }
}

/**
 * Sends what has been recorded, if the collector takes it in time. Never throws: a collector that
 * is away is told on stderr, and is no fault of this process.
 */
export async function stopTracing(): Promise<void> {
  if (shutdown === undefined) return
  const late = () => new Error(`the collector did not take it within ${STOP_MS_MAX} ms`)
  try {
    await within(STOP_MS_MAX, shutdown(), late)
  } catch (error) {
    const [why] = String(error instanceof Error ? error.message : error).split('\n')
    process.stderr.write(`curtail: what was traced last is lost: ${why}\n`)
  }
}
