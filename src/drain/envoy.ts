// What a drain needs to know of its Envoy, and the services that the edge forwards to.

/** Services that the edge cannot answer without, by their clusters. */
export const SERVICES: readonly string[] = ['create', 'redirect']

/** What the public listeners serve at one moment. */
export interface Served {
  /** Connections that are open. */
  readonly connections: number
  /** Requests that are under way. */
  readonly requests: number
  /** Connections that were ever accepted. */
  readonly accepted: number
}

/** Nobody listens there: Envoy has ended. Or no answer, or another one, came in time. */
export type NoAnswer = 'gone' | 'silent'

/** Asks one Envoy. */
export interface EnvoyAdmin {
  /** Whether it takes requests, has yet to, or has begun to drain. */
  askReady(): Promise<'ready' | 'draining' | 'not-ready' | NoAnswer>
  /** Tells it to drain: its health checks fail, and its answers are their connections' last. */
  beginDrain(): Promise<'begun' | NoAnswer>
  /** Tells it to end at once; one that does not hear it goes on. */
  end(): Promise<void>
  /** Those of `SERVICES` of which it knows no pod that it would send a request to. */
  findUnreached(): Promise<readonly string[] | NoAnswer>
  /** What it still serves. */
  readServed(): Promise<Served | NoAnswer>
}
