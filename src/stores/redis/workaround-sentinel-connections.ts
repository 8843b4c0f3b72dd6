// Workaround for ioredis 6.0, whose internal connections to sentinels are not configurable: closing
// waits 2 s for the sentinel, which delays process exit, and every failed attempt is printed to
// stderr.
import { type Redis, SentinelConnector } from 'ioredis'

/** The member of the driver that is patched: it creates these connections. */
interface SentinelDialer {
  connectToSentinel: (this: SentinelDialer, endpoint: object, options?: object) => Redis
}

/**
 * Patches the driver: connections to sentinels close within `closeMsMax`, and print no errors,
 * which the main connection reports.
 */
export function configureSentinelConnections(closeMsMax: number): void {
  const dialer = SentinelConnector.prototype as unknown as SentinelDialer
  const dial = dialer.connectToSentinel
  dialer.connectToSentinel = function (endpoint, options) {
    const client = dial.call(this, endpoint, { disconnectTimeout: closeMsMax, ...options })
    return client.on('error', () => undefined)
  }
}
