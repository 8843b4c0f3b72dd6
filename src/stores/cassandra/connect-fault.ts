// The cause of a failed connection to Cassandra, as one sentence for an operator. Does not import
// the driver; the sentences are for logs and exit messages, never for clients.
import { isUnreachable } from '../../resilience/start-period.ts'
import { shapeOf } from './failed-outcome.ts'
import type { CassandraPlan } from './settings.ts'

/**
 * The cause. `unreachable`: no node responds yet. The others persist until the operator changes
 * settings or, for `keyspace`, runs `migrate`.
 */
export type ConnectFault = {
  readonly kind: 'unreachable' | 'credentials' | 'data-center' | 'keyspace' | 'tls'
  readonly sentence: string
}

const CREDENTIALS = 'CASSANDRA_USERNAME and CASSANDRA_PASSWORD'
/** The driver's message if no contact point can be resolved. */
const UNRESOLVED = 'No host could be resolved'
const CONNECT_TIMEOUT = 'Connection timeout'

type FindFault = (
  error: ReturnType<typeof shapeOf>,
  plan: CassandraPlan,
) => ConnectFault | undefined

/** Finds the cause in the driver's error and each host's error. */
export function connectFaultOf(error: unknown, plan: CassandraPlan): ConnectFault {
  const errors = [error, ...hostErrorsOf(error)].map(shapeOf)
  const faults = [credentialsFault, dataCenterFault, keyspaceFault, tlsFault].flatMap((find) =>
    errors.map((shape) => find(shape, plan)),
  )
  return faults.find((fault) => fault !== undefined) ?? unreachableFault(errors, plan)
}

/**
 * Whether no node was reached: the nodes may not have started yet. False if a node closes the
 * connection: it may require TLS. The driver then reports the reset or, if the node closes the
 * connection without a reset, that its first request timed out.
 */
export function isNoNodeReached(error: unknown): boolean {
  const hostErrors = hostErrorsOf(error)
  return (hostErrors.length > 0 ? hostErrors : [error]).map(shapeOf).every((shape) => {
    const { message } = shape
    return message === UNRESOLVED || message === CONNECT_TIMEOUT || isUnreachable(shape)
  })
}

function hostErrorsOf(error: unknown): readonly unknown[] {
  const { innerErrors } = (error ?? {}) as { readonly innerErrors?: Record<string, unknown> }
  return Object.values(innerErrors ?? {})
}

const credentialsFault: FindFault = ({ name, code }, { credentials }) => {
  if (name !== 'AuthenticationError' && code !== 0x0100) return undefined
  const sentence =
    credentials === undefined
      ? `Cassandra requires credentials: set ${CREDENTIALS}`
      : `Cassandra rejects ${CREDENTIALS}: use those of a role that may log in`
  return { kind: 'credentials', sentence }
}

const dataCenterFault: FindFault = ({ message }, { localDc }) => {
  const [, found] = /only found hosts in data centers: \[([^\]]*)\]/.exec(message) ?? []
  if (found === undefined) return undefined
  const sentence = `CASSANDRA_LOCAL_DC must be one of ${found}: current value is ${localDc}`
  return { kind: 'data-center', sentence }
}

const keyspaceFault: FindFault = ({ code, message }, { keyspace }) => {
  if (code !== 0x2200 || !/keyspace .* does not exist/i.test(message)) return undefined
  const sentence = `unknown keyspace ${keyspace} in Cassandra: run curtail migrate`
  return { kind: 'keyspace', sentence }
}

const tlsFault: FindFault = ({ code, message }) => {
  const isTls =
    typeof code === 'string' && /^(ERR_(TLS|SSL|OSSL)|EPROTO|CERT_|UNABLE_|SELF_|DEPTH_)/.test(code)
  if (!isTls) return undefined
  return { kind: 'tls', sentence: `TLS with Cassandra failed: ${message}: check CASSANDRA_TLS_CA` }
}

function unreachableFault(
  errors: readonly { readonly message: string }[],
  { hosts, port }: CassandraPlan,
): ConnectFault {
  const points = `CASSANDRA_CONTACT_POINTS (${hosts.join(', ')})`
  if (errors.some(({ message }) => message === UNRESOLVED))
    return { kind: 'unreachable', sentence: `no name in ${points} can be resolved` }
  return { kind: 'unreachable', sentence: `Cassandra is unavailable at ${points} on port ${port}` }
}
