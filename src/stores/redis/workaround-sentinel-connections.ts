// Workaround for ioredis 6.0, whose internal connections to sentinels are not configurable:
// - closing waits 2 s for the sentinel, which delays process exit;
// - every failed attempt is printed to stderr;
// - the failover detector reconnects with the credentials that the connector had at first.
import { type Redis, type RedisOptions, SentinelConnector } from 'ioredis'

/** The member of the driver that is patched: it creates these connections. */
interface SentinelDialer {
  readonly options: RedisOptions
  connectToSentinel: (this: SentinelDialer, endpoint: object, options?: object) => Redis
}

/**
 * Patches the driver: connections to sentinels close within `closeMsMax`, reconnect with the
 * connector's current credentials, and print no errors, which the main connection reports.
 */
export function configureSentinelConnections(closeMsMax: number): void {
  const dialer = SentinelConnector.prototype as unknown as SentinelDialer
  const dial = dialer.connectToSentinel
  dialer.connectToSentinel = function (endpoint, options) {
    const client = dial.call(this, endpoint, { disconnectTimeout: closeMsMax, ...options })
    client.on('close', () => {
      const { sentinelUsername, sentinelPassword, sentinelTLS } = this.options
      const credentials = { username: sentinelUsername, password: sentinelPassword }
      Object.assign(client.options, credentials, { tls: sentinelTLS })
    })
    return client.on('error', () => undefined)
  }
}
