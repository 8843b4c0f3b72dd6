// The driver's options: contact points, load balancing, reconnection, timeouts and retries.
import { isIPv6 } from 'node:net'
import { type DseClientOptions, policies } from 'cassandra-driver'
import type { CassandraPlan } from './settings.ts'
import { profilesOf, SpeculativeReads } from './statement-kinds.ts'

const CONNECT_MS_MAX = 2000
const DRIVER_CALL_MS_MAX = 5000
const SCHEMA_AGREEMENT_SECONDS_MAX = 20
/** A hung node's connection is closed after this many timeouts, or by the heartbeat when idle. */
const DEFUNCT_TIMEOUTS_MAX = 16
const HEARTBEAT_MS = 5000

/** The pauses between attempts to connect; the driver's default grows to ten minutes. */
export const BACK_OFF = { firstMs: 250, maxMs: 5000 }

/** Options of a client that uses the plan's keyspace, or none. */
export function driverOptions(plan: CassandraPlan, inKeyspace: boolean): DseClientOptions {
  const { hosts, port, localDc, keyspace, credentials, tls } = plan
  return {
    contactPoints: hosts.map((host) => (isIPv6(host) ? `[${host}]:${port}` : host)),
    localDataCenter: localDc,
    ...(inKeyspace && { keyspace }),
    ...(credentials !== undefined && { credentials }),
    ...(tls !== undefined && {
      sslOptions: {
        ...tls,
        rejectUnauthorized: true,
        // Nodes are discovered by address, which certificates seldom name: the CA is verified.
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
        BACK_OFF.maxMs,
      ),
      speculativeExecution: new SpeculativeReads(),
    },
    protocolOptions: { port, maxSchemaAgreementWaitSeconds: SCHEMA_AGREEMENT_SECONDS_MAX },
    pooling: { heartBeatInterval: HEARTBEAT_MS, warmup: true },
    socketOptions: {
      connectTimeout: CONNECT_MS_MAX,
      readTimeout: DRIVER_CALL_MS_MAX,
      defunctReadTimeoutThreshold: DEFUNCT_TIMEOUTS_MAX,
      keepAlive: true,
      tcpNoDelay: true,
    },
    encoding: { useBigIntAsLong: true },
  }
}
