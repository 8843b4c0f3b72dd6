// The OpenTelemetry preload: every start command loads it with --import, before the program.
// It does nothing unless OTEL_EXPORTER_OTLP_ENDPOINT (or its _TRACES_ variant) is set, or
// TRACING_ENABLED is true in `ratelimit`. The edge decides on sampling: a request without the
// sampled flag has no span and costs nothing.
import { isMainThread } from 'node:worker_threads'
import { within } from '../resilience/deadline.ts'
import { openTelemetryVariables } from './reference-tracing.ts'
import { installSpans } from './spans.ts'

/** How long the shutdown waits for the collector; the SDK itself would retry for many seconds. */
const STOP_MS_MAX = 1500

let shutdown: (() => Promise<void>) | undefined

Object.assign(process.env, openTelemetryVariables(process.env, process.argv[2]))

const endpoint =
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']

const isDisabled = process.env['OTEL_SDK_DISABLED'] === 'true'

// Worker threads load this file too, but serve no requests.
if (isMainThread && endpoint !== undefined && endpoint !== '' && !isDisabled) await startTracing()

async function startTracing(): Promise<void> {
  const { NodeSDK } = await import('@opentelemetry/sdk-node')
  const { createSpans } = await import('./open-telemetry.ts')
  // Requests without a traceparent are sampled only if the operator configures a sampler.
  const usesSampler = process.env['OTEL_TRACES_SAMPLER'] !== undefined
  process.env['OTEL_TRACES_SAMPLER'] ??= 'parentbased_always_off'
  // The SDK itself reads all other standard OTEL_* variables. Nothing is monkey-patched: servers
  // and clients create their spans explicitly (spans.ts).
  const sdk = new NodeSDK({
    ...(process.env['OTEL_SERVICE_NAME'] === undefined && { serviceName: 'curtail' }),
  })
  sdk.start()
  installSpans(createSpans({ usesSampler }))
  shutdown = async () => {
    await sdk.shutdown()
  }
}

/**
 * Exports the recorded spans if the collector accepts them within the deadline. Never throws: an
 * unavailable collector is reported on stderr and is not an error of this process.
 */
export async function stopTracing(): Promise<void> {
  if (shutdown === undefined) return
  const timeoutError = () => new Error(`the collector did not accept them within ${STOP_MS_MAX} ms`)
  try {
    await within(STOP_MS_MAX, shutdown(), timeoutError)
  } catch (error) {
    const [reason] = String(error instanceof Error ? error.message : error).split('\n')
    process.stderr.write(`curtail: the last spans are lost: ${reason}\n`)
  }
}
