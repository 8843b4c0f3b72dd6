// Whether the counter store is available, derived from the state of its connections and of its
// circuit breaker. Reports each change at once; sends no requests itself.

/** Tracks one store. */
export interface StoreHealth {
  /** A connection is established, or it is lost or failed to connect. */
  readonly noteConnection: (name: string, isUp: boolean) => void
  /** The circuit breaker opens, or closes after a probe of all connections succeeded. */
  readonly noteCircuit: (isOpen: boolean) => void
}

/** Tracks the store behind these connections; `onChange` also gets the first known state. */
export function trackStoreHealth(
  connections: readonly string[],
  onChange: (state: 'up' | 'down') => void,
): StoreHealth {
  const up = new Map<string, boolean | undefined>(connections.map((name) => [name, undefined]))
  let isCircuitOpen = false
  let reported: 'up' | 'down' | undefined
  const update = () => {
    const seen = [...up.values()]
    const isDown = isCircuitOpen || seen.includes(false)
    if (!isDown && seen.includes(undefined)) return
    const state = isDown ? 'down' : 'up'
    if (state === reported) return
    reported = state
    onChange(state)
  }
  return {
    noteConnection(name, isUp) {
      up.set(name, isUp)
      update()
    },
    noteCircuit(isOpen) {
      isCircuitOpen = isOpen
      if (!isOpen) for (const name of connections) up.set(name, true)
      update()
    },
  }
}
