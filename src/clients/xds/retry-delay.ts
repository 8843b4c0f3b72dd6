// The time until the next attempt to connect to the xDS server.
import type { XdsConfig } from './settings.ts'

/** Why a connection attempt or a stream failed. */
export const failureReasons = [
  'tls_files',
  'connect',
  'message_size',
  'protocol',
  'stream',
  'closed',
] as const

/** One of `failureReasons`. */
export type FailureReason = (typeof failureReasons)[number]

/** Reasons of failures before a stream was opened. */
const beforeStream: readonly FailureReason[] = ['tls_files', 'connect']

/**
 * Milliseconds until the next attempt. The interval doubles with each of the `failures` in a row,
 * up to the maximum; jitter replaces a share of it with a random time.
 */
export function retryDelayMs(
  config: XdsConfig,
  { reason, failures }: { readonly reason: FailureReason; readonly failures: number },
  random: () => number,
): number {
  const initialMs = beforeStream.includes(reason)
    ? config.CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL
    : config.XDS_CLIENT_BACKOFF_INITIAL_INTERVAL
  const maxMs = config.XDS_CLIENT_BACKOFF_MAX_INTERVAL
  const intervalMs = Math.min(initialMs * 2 ** Math.min(failures - 1, 30), maxMs)
  if (!config.XDS_CLIENT_BACKOFF_JITTER) return intervalMs
  const share = Math.min(config.XDS_CLIENT_BACKOFF_RANDOM_FACTOR, 1)
  return intervalMs * (1 - share * random())
}
