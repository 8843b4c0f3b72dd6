// What a process says of itself to probes. Ready comes once, with the first good answer of what it
// depends on, and stays: a pod that can still answer from memory must keep its traffic.

/** State of one dependency as `/readyz` shows it. */
type DependencyState = 'up' | 'no-majority' | 'down' | 'unknown'

/** Liveness and readiness of one process. */
export interface Health {
  /** From now on `/readyz` answers 200. */
  markReady(): void
  /** From now on `/readyz` answers 503: the process is ending. */
  markDraining(): void
  /** Notes how a dependency was last seen. */
  note(dependency: string, state: DependencyState): void
  /** What `/readyz` answers. */
  read(): { ready: boolean; status: string; dependencies: Record<string, DependencyState> }
}

/** Makes the health of a process that is starting. */
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
