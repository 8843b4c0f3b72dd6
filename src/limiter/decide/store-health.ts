// Whether the store of counters can be used, from all that is seen of it: whether each of its
// connections stands, and whether calls are answered. Tells each change at once; asks nobody.

/** Follows one store. */
export interface StoreHealth {
  /** A connection stands now, or is lost or could not be made. */
  readonly noteConnection: (name: string, isUp: boolean) => void
  /** The store is left alone; or it is used again, for a probe of all connections was answered. */
  readonly noteAway: (isAway: boolean) => void
}

/** Follows the store of these connections; `tell` is told each change, and nothing before one. */
export function createStoreHealth(
  connections: readonly string[],
  tell: (state: 'up' | 'down') => void,
): StoreHealth {
  const up = new Map<string, boolean | undefined>(connections.map((name) => [name, undefined]))
  let isLeftAlone = false
  let told: 'up' | 'down' | undefined
  const follow = () => {
    const seen = [...up.values()]
    const isDown = isLeftAlone || seen.includes(false)
    if (!isDown && seen.includes(undefined)) return
    const state = isDown ? 'down' : 'up'
    if (state === told) return
    told = state
    tell(state)
  }
  return {
    noteConnection(name, isUp) {
      up.set(name, isUp)
      follow()
    },
    noteAway(isAway) {
      isLeftAlone = isAway
      if (!isAway) for (const name of connections) up.set(name, true)
      follow()
    },
  }
}
