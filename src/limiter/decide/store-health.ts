// Whether the counter store is available, derived from the state of its connections and of its
// circuit breaker. Reports each change immediately; sends no requests.

/** Tracks one store. */
export interface StoreHealth {
  /** Called when a connection is established, is lost or cannot be established. */
  readonly setConnection: (name: string, isUp: boolean) => void
  /**
   * Called when the circuit opens, and when it closes: after a successful probe of all connections,
   * or without one, when a delayed response arrives.
   */
  readonly setCircuit: (isOpen: boolean, isProbed: boolean) => void
}

/** Tracks the store with these connections; `onChange` also receives the initial state. */
export function trackStoreHealth(
  connections: readonly string[],
  onChange: (state: 'up' | 'down') => void,
): StoreHealth {
  const up = new Map<string, boolean | undefined>(connections.map((name) => [name, undefined]))
  let isCircuitOpen = false
  let reported: 'up' | 'down' | undefined
  const update = () => {
    const states = [...up.values()]
    const isDown = isCircuitOpen || states.includes(false)
    if (!isDown && states.includes(undefined)) return
    const state = isDown ? 'down' : 'up'
    if (state === reported) return
    reported = state
    onChange(state)
  }
  return {
    setConnection(name, isUp) {
      up.set(name, isUp)
      update()
    },
    setCircuit(isOpen, isProbed) {
      isCircuitOpen = isOpen
      if (isProbed) for (const name of connections) up.set(name, true)
      update()
    },
  }
}
