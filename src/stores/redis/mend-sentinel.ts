// A mend of the driver (6.0): its own connections to sentinels, which nobody else can reach, wait
// 2 s for a sentinel's goodbye when they are closed, which keeps a process from ending, and tell
// stderr of every attempt that fails. Changes nothing else of them.
import { type Redis, SentinelConnector } from 'ioredis'

/** The part of the driver that makes such a connection. */
interface SentinelDialer {
  connectToSentinel: (this: SentinelDialer, endpoint: object, options?: object) => Redis
}

/** Makes them close within this time, and be silent: the connection itself tells what matters. */
export function mendSentinels(closeMsMax: number): void {
  const dialer = SentinelConnector.prototype as unknown as SentinelDialer
  const dial = dialer.connectToSentinel
  dialer.connectToSentinel = function (endpoint, options) {
    const client = dial.call(this, endpoint, { disconnectTimeout: closeMsMax, ...options })
    return client.on('error', () => undefined)
  }
}
