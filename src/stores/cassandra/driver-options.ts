// How the driver is set up: whom it asks, how fast it comes back, and what it leaves to us.
import { isIPv6 } from 'node:net'
import { type DseClientOptions, policies } from 'cassandra-driver'
import type { CassandraPlan } from './settings.ts'
import { profilesOf, SecondRead } from './statement-kinds.ts'

const CONNECT_MS_MAX = 2000
const DRIVER_CALL_MS_MAX = 5000
const SCHEMA_AGREEMENT_SECONDS_MAX = 20
/** A hung node is left after so many calls without an answer, or this long without any call. */
const UNANSWERED_MAX = 16
const HEART_BEAT_MS = 5000

/** The pauses between attempts to connect; the driver's own grow to ten minutes. */
export const BACK_OFF = { firstMs: 250, mostMs: 5000 }

/** Options of a client that begins in the plan's keyspace, or in none. */
export function driverOptions(plan: CassandraPlan, inKeyspace: boolean): DseClientOptions {
  const { hosts, port, localDc, keyspace, credentials, tls } = plan
  return {
    contactPoints: hosts.map((host) => (isIPv6(host) ? `[${host}]:${port}` : host)),
    localDataCenter: localDc,
    ...(inKeyspace ? { keyspace } : {}),
    ...(credentials === undefined ? {} : { credentials }),
    ...(tls === undefined
      ? {}
      : {
          sslOptions: {
            ca: tls.ca,
            ...(tls.cert === undefined ? {} : { cert: tls.cert }),
            ...(tls.key === undefined ? {} : { key: tls.key }),
            rejectUnauthorized: true,
            // Nodes are found by addresses, which certificates seldom name: the authority counts.
            checkServerIdentity: () => undefined,
          },
        }),
    applicationName: 'curtail',
    monitorReporting: { enabled: false },
    profiles: profilesOf(plan),
    policies: {
      loadBalancing: new policies.loadBalancing.DefaultLoadBalancingPolicy({ localDc }),
      reconnection: new policies.reconnection.ExponentialReconnectionPolicy(
        BACK_OFF.firstMs,
        BACK_OFF.mostMs,
      ),
      speculativeExecution: new SecondRead(),
    },
    protocolOptions: { port, maxSchemaAgreementWaitSeconds: SCHEMA_AGREEMENT_SECONDS_MAX },
    pooling: { heartBeatInterval: HEART_BEAT_MS, warmup: true },
    socketOptions: {
      connectTimeout: CONNECT_MS_MAX,
      readTimeout: DRIVER_CALL_MS_MAX,
      defunctReadTimeoutThreshold: UNANSWERED_MAX,
      keepAlive: true,
      tcpNoDelay: true,
    },
    encoding: { useBigIntAsLong: true },
  }
}
