// Why Cassandra could not be connected to, as one sentence for an operator. Knows no driver; the
// sentences are for logs and exit messages, never for clients.
import { shapeOf } from './failed-outcome.ts'
import type { CassandraPlan } from './settings.ts'

/**
 * Why. `away`: nobody answers yet. The others do not mend themselves: someone must change
 * settings, or, for `keyspace`, run `migrate`.
 */
export type ConnectFault = {
  readonly kind: 'away' | 'credentials' | 'data-center' | 'keyspace' | 'tls'
  readonly sentence: string
}

const CREDENTIALS = 'CASSANDRA_USERNAME and CASSANDRA_PASSWORD'

/** What went wrong, by the driver's error and what each host said. */
export function connectFaultOf(error: unknown, plan: CassandraPlan): ConnectFault {
  const inner = (error as { innerErrors?: Record<string, unknown> } | null)?.innerErrors ?? {}
  const seen = [error, ...Object.values(inner)].map(shapeOf)
  return (
    firstOf(seen, ({ name, code }) =>
      name === 'AuthenticationError' || code === 0x0100 ? credentialsFault(plan) : undefined,
    ) ??
    firstOf(seen, ({ message }) => dataCenterFault(message, plan)) ??
    firstOf(seen, ({ code, message }) => keyspaceFault(code, message, plan)) ??
    firstOf(seen, ({ code, message }) => tlsFault(code, message)) ??
    awayFault(seen, plan)
  )
}

type Seen = ReturnType<typeof shapeOf>

function firstOf(
  seen: readonly Seen[],
  find: (one: Seen) => ConnectFault | undefined,
): ConnectFault | undefined {
  for (const one of seen) {
    const fault = find(one)
    if (fault !== undefined) return fault
  }
  return undefined
}

function credentialsFault({ credentials }: CassandraPlan): ConnectFault {
  const sentence =
    credentials === undefined
      ? `Cassandra asks who we are: set ${CREDENTIALS}`
      : `Cassandra refuses ${CREDENTIALS}: give those of a role that logs in`
  return { kind: 'credentials', sentence }
}

function dataCenterFault(message: string, { localDc }: CassandraPlan): ConnectFault | undefined {
  const [, found] = /only found hosts in data centers: \[([^\]]*)\]/.exec(message) ?? []
  if (found === undefined) return undefined
  const sentence = `CASSANDRA_LOCAL_DC must be one of ${found}: current value is ${localDc}`
  return { kind: 'data-center', sentence }
}

function keyspaceFault(
  code: unknown,
  message: string,
  { keyspace }: CassandraPlan,
): ConnectFault | undefined {
  if (code !== 0x2200 || !/keyspace .* does not exist/i.test(message)) return undefined
  const sentence = `there is no keyspace ${keyspace} in Cassandra yet: run curtail migrate`
  return { kind: 'keyspace', sentence }
}

function tlsFault(code: unknown, message: string): ConnectFault | undefined {
  const isTls =
    typeof code === 'string' && /^(ERR_(TLS|SSL|OSSL)|EPROTO|CERT_|UNABLE_|SELF_|DEPTH_)/.test(code)
  if (!isTls) return undefined
  return { kind: 'tls', sentence: `TLS with Cassandra fails: ${message} (CASSANDRA_TLS_CA)` }
}

function awayFault(seen: readonly Seen[], { hosts, port }: CassandraPlan): ConnectFault {
  const where = `CASSANDRA_CONTACT_POINTS (${hosts.join(', ')}) on port ${port}`
  if (seen.some(({ message }) => message === 'No host could be resolved'))
    return { kind: 'away', sentence: `no name in ${where} can be resolved` }
  return { kind: 'away', sentence: `Cassandra does not answer at ${where}` }
}
