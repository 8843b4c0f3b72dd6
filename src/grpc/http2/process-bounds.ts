// Bounds on the connections, streams and buffered bytes of one process. Each bound is shared fairly
// between client addresses and their connections: a connection that exceeds its share is rejected
// or shed, so that the process does not run out of memory (ADR 0015).

/** The bounded resources; each is counted separately. */
export const boundKinds = [
  'connections',
  'streams',
  'headers',
  'messages',
  'input',
  'output',
] as const

/** One of the bounded resources. */
export type BoundKind = (typeof boundKinds)[number]

const MIB = 1024 * 1024

/**
 * The bounds of a process, which keep its memory below 384 MiB. A stream takes about 1 KiB; a
 * connection about 12 KiB, and 12 KiB of `headers` once its HPACK table is full. One address may
 * use at most half of each bound.
 */
export const processMax: Readonly<Record<BoundKind, number>> = {
  connections: 4000,
  streams: 40_000,
  headers: 56 * MIB,
  messages: 64 * MIB,
  input: 32 * MIB,
  output: 32 * MIB,
}

/** When a bound is reached, this fraction is shed, so that shedding is rare. */
const SHED_FRACTION = 1 / 16

/** The amount in use, and the number of its holders. */
class Usage {
  used = 0
  holders = 0

  /** The average per holder if a holder that now uses `own` acquired `amount` more. */
  averageWith(amount: number, own: number): number {
    return (this.used + amount) / (this.holders + (own > 0 ? 0 : 1))
  }
}

function recordOf<T>(create: (kind: BoundKind) => T): Readonly<Record<BoundKind, T>> {
  return Object.fromEntries(boundKinds.map((kind) => [kind, create(kind)])) as Record<BoundKind, T>
}

/** The connections of one client address, and what they use together. */
interface ClientAddress {
  readonly name: string
  readonly connections: Set<TrackedConnection>
  readonly usage: Readonly<Record<BoundKind, Usage>>
}

/** A budget from which amounts are acquired and released. */
export interface Budget {
  /** Acquires an amount; false if the budget does not allow it. */
  acquire(amount: number): boolean
  release(amount: number): void
}

/** One connection's budget of one kind. */
class ConnectionBudget implements Budget {
  used = 0
  readonly kind: BoundKind
  private readonly bounds: ProcessBounds
  private readonly connection: TrackedConnection

  constructor(bounds: ProcessBounds, connection: TrackedConnection, kind: BoundKind) {
    this.bounds = bounds
    this.connection = connection
    this.kind = kind
  }

  acquire(amount: number): boolean {
    if (!this.bounds.admits(this.connection, this.kind, amount)) return false
    this.add(amount)
    return true
  }

  release(amount: number): void {
    this.add(-amount)
  }

  private add(amount: number): void {
    if (amount === 0) return
    const addressUsage = this.connection.address.usage[this.kind]
    const total = this.bounds.usage[this.kind]
    const [ownBefore, addressBefore] = [this.used, addressUsage.used]
    this.used += amount
    addressUsage.used += amount
    total.used += amount
    addressUsage.holders += Number(this.used > 0) - Number(ownBefore > 0)
    total.holders += Number(addressUsage.used > 0) - Number(addressBefore > 0)
    if (amount < 0) this.bounds.removeUnused(this.connection.address)
  }
}

/** One connection's budgets by kind. */
export type Budgets = Readonly<Record<BoundKind, Budget>>

/** A connection within the bounds: its budgets, and how to close it if others need its share. */
export class TrackedConnection {
  readonly address: ClientAddress
  /** Destroys the connection, because others need its resources. */
  readonly shed: () => void
  readonly budgets: Readonly<Record<BoundKind, ConnectionBudget>>

  constructor(bounds: ProcessBounds, address: ClientAddress, shed: () => void) {
    this.address = address
    this.shed = shed
    this.budgets = recordOf((kind) => new ConnectionBudget(bounds, this, kind))
  }

  /** Releases the connection itself; calls in progress release their streams when they complete. */
  close(): void {
    if (this.address.connections.delete(this)) this.budgets.connections.release(1)
  }
}

/** The bounds of one process. */
export class ProcessBounds {
  readonly usage = recordOf(() => new Usage())
  private readonly max: Readonly<Record<BoundKind, number>>
  /** Called for each connection that is shed, and for each acquisition that is rejected. */
  private readonly onShed: (kind: BoundKind) => void
  private readonly addresses = new Map<string, ClientAddress>()

  constructor(onShed: (kind: BoundKind) => void, max = processMax) {
    this.onShed = onShed
    this.max = max
  }

  /** Adds a connection of an address; `undefined` if the address exceeds its share. */
  open(name: string, shed: () => void): TrackedConnection | undefined {
    const existing = this.addresses.get(name)
    const address = existing ?? { name, connections: new Set(), usage: recordOf(() => new Usage()) }
    const connection = new TrackedConnection(this, address, shed)
    if (!connection.budgets.connections.acquire(1)) return undefined
    address.connections.add(connection)
    this.addresses.set(name, address)
    return connection
  }

  /** The number of addresses that have connections or calls in progress. */
  get addressCount(): number {
    return this.addresses.size
  }

  /** Removes an address that uses nothing; until then, new connections share its usage. */
  removeUnused({ name, usage }: ClientAddress): void {
    if (boundKinds.every((kind) => usage[kind].used === 0)) this.addresses.delete(name)
  }

  /**
   * Whether a connection may acquire an amount; sheds other connections if that is necessary. An
   * address may use at most as much as remains free, so that another address can always acquire
   * some. When the bound is reached, the acquisition of a connection above the average is rejected;
   * for one below the average, the largest holders are shed.
   */
  admits(connection: TrackedConnection, kind: BoundKind, amount: number): boolean {
    if (this.fits(connection, kind, amount)) return true
    const own = connection.budgets[kind].used
    const addressUsage = connection.address.usage[kind]
    const isGreedyAddress =
      addressUsage.used + amount >= this.usage[kind].averageWith(amount, addressUsage.used)
    const isGreedy = own + amount >= addressUsage.averageWith(amount, own)
    if (!isGreedyAddress) this.shedLargest(kind, connection, [...this.addresses.values()])
    else if (!isGreedy) this.shedLargest(kind, connection, [connection.address])
    const isAdmitted = this.fits(connection, kind, amount)
    if (!isAdmitted) this.onShed(kind)
    return isAdmitted
  }

  private fits(connection: TrackedConnection, kind: BoundKind, amount: number): boolean {
    const free = this.max[kind] - this.usage[kind].used - amount
    return connection.address.usage[kind].used + amount <= free
  }

  /**
   * Sheds the largest connections of the largest addresses, the newest first, until SHED_FRACTION
   * is shed. What closed connections still use counts as shed, because they will release it.
   */
  private shedLargest(
    kind: BoundKind,
    exempt: TrackedConnection,
    addresses: readonly ClientAddress[],
  ): void {
    const usedBefore = addresses.reduce((sum, { usage }) => sum + usage[kind].used, 0)
    const until = usedBefore * (1 - SHED_FRACTION)
    const open = addresses.flatMap(({ connections }) => [...connections].reverse())
    const candidates = open
      .filter((connection) => connection !== exempt && connection.budgets[kind].used > 0)
      .map((connection) => ({
        connection,
        used: connection.budgets[kind].used,
        usedByAddress: connection.address.usage[kind].used,
      }))
      .sort((a, b) => b.usedByAddress - a.usedByAddress || b.used - a.used)
    let left = open.reduce((sum, { budgets }) => sum + budgets[kind].used, 0)
    for (const { connection, used } of candidates) {
      if (left <= until) return
      left -= used
      this.onShed(kind)
      connection.shed()
      connection.close()
    }
  }
}
