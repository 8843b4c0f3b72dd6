// Bounds on the connections, streams and buffered bytes of one process. Each bound is shared fairly
// between client addresses and their connections: a connection that exceeds its share is rejected
// or shed, so that the process does not run out of memory (ADR 0015).

/** The bounded resources; each has its own sum. */
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
class Sum {
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

/** The connections of one client address, and their sums. */
interface Address {
  readonly name: string
  readonly shares: Set<Share>
  readonly sums: Readonly<Record<BoundKind, Sum>>
}

/** A budget from which amounts are acquired and released. */
export interface Budget {
  /** Acquires an amount; false if the budget does not allow it. */
  acquire(amount: number): boolean
  release(amount: number): void
}

/** One connection's budget of one kind. */
class Allowance implements Budget {
  used = 0
  readonly kind: BoundKind
  private readonly bounds: ProcessBounds
  private readonly share: Share

  constructor(bounds: ProcessBounds, share: Share, kind: BoundKind) {
    this.bounds = bounds
    this.share = share
    this.kind = kind
  }

  acquire(amount: number): boolean {
    if (!this.bounds.admits(this.share, this.kind, amount)) return false
    this.add(amount)
    return true
  }

  release(amount: number): void {
    this.add(-amount)
  }

  private add(amount: number): void {
    if (amount === 0) return
    const ofAddress = this.share.address.sums[this.kind]
    const total = this.bounds.sums[this.kind]
    const [ownBefore, addressBefore] = [this.used, ofAddress.used]
    this.used += amount
    ofAddress.used += amount
    total.used += amount
    ofAddress.holders += Number(this.used > 0) - Number(ownBefore > 0)
    total.holders += Number(ofAddress.used > 0) - Number(addressBefore > 0)
    if (amount < 0) this.bounds.removeUnused(this.share.address)
  }
}

/** One connection's budgets by kind. */
export type Allowances = Readonly<Record<BoundKind, Budget>>

/** One connection's share of the bounds. */
export class Share {
  readonly address: Address
  /** Destroys the connection, because others need its resources. */
  readonly shed: () => void
  readonly budgets: Readonly<Record<BoundKind, Allowance>>

  constructor(bounds: ProcessBounds, address: Address, shed: () => void) {
    this.address = address
    this.shed = shed
    this.budgets = recordOf((kind) => new Allowance(bounds, this, kind))
  }

  /** Releases the connection itself; calls in progress release their streams when they complete. */
  close(): void {
    if (this.address.shares.delete(this)) this.budgets.connections.release(1)
  }
}

/** The bounds of one process. */
export class ProcessBounds {
  readonly sums = recordOf(() => new Sum())
  private readonly max: Readonly<Record<BoundKind, number>>
  private readonly onShed: (kind: BoundKind) => void
  private readonly addresses = new Map<string, Address>()

  constructor(onShed: (kind: BoundKind) => void, max = processMax) {
    this.onShed = onShed
    this.max = max
  }

  /** Counts a connection; `undefined` if its address exceeds its share. */
  open(name: string, shed: () => void): Share | undefined {
    const existing = this.addresses.get(name)
    const address = existing ?? { name, shares: new Set(), sums: recordOf(() => new Sum()) }
    const share = new Share(this, address, shed)
    if (!share.budgets.connections.acquire(1)) return undefined
    address.shares.add(share)
    this.addresses.set(name, address)
    return share
  }

  /** The number of addresses that have connections or calls in progress. */
  get addressCount(): number {
    return this.addresses.size
  }

  /** Removes an address that uses nothing; until then, a new connection of it has the same sums. */
  removeUnused(address: Address): void {
    const { name, shares, sums } = address
    if (shares.size > 0 || this.addresses.get(name) !== address) return
    if (boundKinds.every((kind) => sums[kind].used === 0)) this.addresses.delete(name)
  }

  /**
   * Whether a connection may acquire an amount. An address may use at most as much as remains free,
   * so that another address can always acquire some. When the bound is reached, a connection above
   * the average is rejected; for one below the average, this method sheds the largest holders.
   */
  admits(share: Share, kind: BoundKind, amount: number): boolean {
    if (this.fits(share, kind, amount)) return true
    const own = share.budgets[kind].used
    const ofAddress = share.address.sums[kind]
    const isGreedyAddress =
      ofAddress.used + amount >= this.sums[kind].averageWith(amount, ofAddress.used)
    const isGreedy = own + amount >= ofAddress.averageWith(amount, own)
    if (!isGreedyAddress) this.shedLargest(kind, share, [...this.addresses.values()])
    else if (!isGreedy) this.shedLargest(kind, share, [share.address])
    const isAdmitted = this.fits(share, kind, amount)
    if (!isAdmitted) this.onShed(kind)
    return isAdmitted
  }

  private fits(share: Share, kind: BoundKind, amount: number): boolean {
    const free = this.max[kind] - this.sums[kind].used - amount
    return share.address.sums[kind].used + amount <= free
  }

  /**
   * Sheds the largest connections of the largest addresses, the newest first. Does not wait until
   * they are closed. Those already shed, whose calls in progress still use streams, count as shed.
   */
  private shedLargest(kind: BoundKind, exempt: Share, addresses: readonly Address[]): void {
    const sum = addresses.reduce((used, { sums }) => used + sums[kind].used, 0)
    const until = sum * (1 - SHED_FRACTION)
    const open = addresses.flatMap(({ shares }) => [...shares].reverse())
    const candidates = open
      .filter((share) => share !== exempt && share.budgets[kind].used > 0)
      .map((share) => ({
        share,
        used: share.budgets[kind].used,
        ofAddress: share.address.sums[kind].used,
      }))
      .sort((a, b) => b.ofAddress - a.ofAddress || b.used - a.used)
    let left = open.reduce((used, { budgets }) => used + budgets[kind].used, 0)
    for (const { share, used } of candidates) {
      if (left <= until) return
      left -= used
      this.onShed(kind)
      share.shed()
      share.close()
    }
  }
}
