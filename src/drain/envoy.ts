// The admin interface of an Envoy as the drain uses it, and the services behind the edge.

/** Services without which the edge cannot respond, by the names of their clusters. */
export const SERVICES: readonly string[] = ['create', 'redirect']

/** The load of the public listeners at one moment. */
export interface ServedLoad {
  /** Open connections. */
  readonly connections: number
  /** Requests in flight. */
  readonly requests: number
  /** Connections accepted since the start. */
  readonly accepted: number
}

/** `exited`: Envoy refuses connections. `unresponsive`: no valid response within the deadline. */
export type NoResponse = 'exited' | 'unresponsive'

/** The admin interface of one Envoy. */
export interface EnvoyAdmin {
  /** Whether Envoy accepts requests, is not ready yet, or drains. */
  readReadiness(): Promise<'ready' | 'draining' | 'not-ready' | NoResponse>
  /** Starts the drain: health checks fail, and each response closes its connection. */
  startDrain(): Promise<'started' | NoResponse>
  /** Stops Envoy immediately; an Envoy that does not respond continues to run. */
  quit(): Promise<void>
  /** Those of `SERVICES` that have no pod to which Envoy would send a request. */
  findUnreachable(): Promise<readonly string[] | NoResponse>
  /** The current load. */
  readServedLoad(): Promise<ServedLoad | NoResponse>
}
