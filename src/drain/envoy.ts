// Envoy's admin interface, as far as the drain uses it, and the services behind the edge.

/** The services to which the edge forwards requests, by the names of their Envoy clusters. */
export const SERVICES: readonly string[] = ['create', 'redirect']

/** The current load of Envoy's public listeners. */
export interface ListenerLoad {
  /** Open connections. */
  readonly connections: number
  /** Requests in flight. */
  readonly requests: number
  /** Connections accepted since Envoy started. */
  readonly accepted: number
}

/** `exited`: Envoy refuses connections. `unresponsive`: no valid response by the deadline. */
export type NoResponse = 'exited' | 'unresponsive'

/** The admin interface of one Envoy. */
export interface EnvoyAdmin {
  /** Whether Envoy accepts requests, is not ready yet, or is draining. */
  readReadiness(): Promise<'ready' | 'draining' | 'not-ready' | NoResponse>
  /** Starts the drain: health checks fail, and each response closes its connection. */
  startDrain(): Promise<'started' | NoResponse>
  /** Stops Envoy immediately; an Envoy that does not respond continues to run. */
  quit(): Promise<void>
  /** Returns those of `SERVICES` that have no healthy pod, as Envoy reports it. */
  findUnreachable(): Promise<readonly string[] | NoResponse>
  /** Returns the current load of the public listeners. */
  readListenerLoad(): Promise<ListenerLoad | NoResponse>
}
