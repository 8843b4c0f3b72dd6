// Readiness of a process, and the states of its dependencies. Its role decides when it becomes
// ready. It then stays ready until it stops, whatever the states are: a pod that can still serve
// from memory must keep its traffic.

/**
 * State of one dependency as `/readyz` shows it. `no-majority`: a node of the store is up, but
 * statements that need a majority of replicas fail.
 */
type DependencyState = 'up' | 'no-majority' | 'down' | 'unknown'

/** Readiness of one process, and the states of its dependencies. */
export interface Health {
  /** From now on `/readyz` responds with 200. */
  markReady(): void
  /** From now on `/readyz` responds with 503: the process is stopping. */
  markDraining(): void
  /** Records the observed state of a dependency. */
  note(dependency: string, state: DependencyState): void
  /** The response of `/readyz`. */
  read(): { ready: boolean; status: string; dependencies: Record<string, DependencyState> }
}

/** Creates the health of a process that is starting. */
export function createHealth(dependencies: readonly string[]): Health {
  const states = new Map<string, DependencyState>(dependencies.map((name) => [name, 'unknown']))
  let status: 'starting' | 'ready' | 'draining' = 'starting'
  return {
    markReady() {
      if (status === 'starting') status = 'ready'
    },
    markDraining() {
      status = 'draining'
    },
    note(dependency, state) {
      states.set(dependency, state)
    },
    read: () => ({ ready: status === 'ready', status, dependencies: Object.fromEntries(states) }),
  }
}
