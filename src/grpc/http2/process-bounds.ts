// What all connections of one process hold together: how many connections and streams, and how many
// bytes of each kind. Each sum has a bound and is shared fairly over client addresses and their
// connections: what exceeds its share is rejected or shed, the process never is. ADR 0015.

/** What is counted; each has a sum of its own. */
export const boundKinds = [
  'connections',
  'streams',
  'headers',
  'messages',
  'input',
  'output',
] as const

/** One of them. */
export type BoundKind = (typeof boundKinds)[number]

const MIB = 1024 * 1024

/**
 * The bounds of a process; they fit under 384 MiB beside what the process itself needs. A stream
 * takes about 1 KiB, a connection about 12 KiB, and 12 KiB of `headers` once its HPACK table is
 * full. One address gets at most half of each.
 */
export const processMax: Readonly<Record<BoundKind, number>> = {
  connections: 4000,
  streams: 40_000,
  headers: 56 * MIB,
  messages: 64 * MIB,
  input: 32 * MIB,
  output: 32 * MIB,
}

/** A scope that is full is relieved of this part of it at once, so that it happens seldom. */
const RELIEF = 1 / 16

/** What is held, and by how many that hold some. */
class Sum {
  used = 0
  holders = 0

  /** What each holder has on average after one that has `own` takes more. */
  averageWith(amount: number, own: number): number {
    return (this.used + amount) / (this.holders + (own > 0 ? 0 : 1))
  }
}

function recordOf<T>(make: (kind: BoundKind) => T): Readonly<Record<BoundKind, T>> {
  return Object.fromEntries(boundKinds.map((kind) => [kind, make(kind)])) as Record<BoundKind, T>
}

/** The connections of one client address, and their sums. */
interface Address {
  readonly name: string
  readonly shares: Set<Share>
  readonly sums: Readonly<Record<BoundKind, Sum>>
}

/** What is taken by parts and given back. */
export interface Budget {
  /** Whether so much more may be held; it then is. */
  take(amount: number): boolean
  give(amount: number): void
}

/** What one connection holds of one kind. */
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

  take(amount: number): boolean {
    if (!this.bounds.admits(this.share, this.kind, amount)) return false
    this.add(amount)
    return true
  }

  give(amount: number): void {
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
  }
}

/** What one connection holds of each kind. */
export type Allowances = Readonly<Record<BoundKind, Budget>>

/** A connection, as the sums see it. */
export class Share {
  readonly address: Address
  /** Ends the connection at once, as others need what it holds. */
  readonly shed: () => void
  readonly parts: Readonly<Record<BoundKind, Allowance>>

  constructor(bounds: ProcessBounds, address: Address, shed: () => void) {
    this.address = address
    this.shed = shed
    this.parts = recordOf((kind) => new Allowance(bounds, this, kind))
  }

  /** The connection is closed; what it still holds is given back as it ends. */
  close(): void {
    if (this.address.shares.delete(this)) this.parts.connections.give(1)
  }
}

/** The sums of one process. */
export class ProcessBounds {
  readonly sums = recordOf(() => new Sum())
  private readonly max: Readonly<Record<BoundKind, number>>
  private readonly onShed: (kind: BoundKind) => void
  private readonly addresses = new Map<string, Address>()

  constructor(onShed: (kind: BoundKind) => void, max = processMax) {
    this.onShed = onShed
    this.max = max
  }

  /** Counts a connection; undefined if the address has had its share of them. */
  open(name: string, shed: () => void): Share | undefined {
    const known = this.addresses.get(name)
    const address = known ?? { name, shares: new Set(), sums: recordOf(() => new Sum()) }
    const share = new Share(this, address, shed)
    if (!share.parts.connections.take(1)) return undefined
    address.shares.add(share)
    this.addresses.set(name, address)
    return share
  }

  /** Forgets an address without connections. */
  close(share: Share): void {
    share.close()
    if (share.address.shares.size === 0) this.addresses.delete(share.address.name)
  }

  /**
   * Whether a connection may hold so much more. An address may hold as much as stays free, so that
   * there always is room for another. If there is none, whoever holds more than the average is
   * rejected; for others those that hold the most are shed.
   */
  admits(share: Share, kind: BoundKind, amount: number): boolean {
    if (this.fits(share, kind, amount)) return true
    const own = share.parts[kind].used
    const ofAddress = share.address.sums[kind]
    const isGreedyAddress =
      ofAddress.used + amount >= this.sums[kind].averageWith(amount, ofAddress.used)
    const isGreedy = own + amount >= ofAddress.averageWith(amount, own)
    if (!isGreedyAddress) this.relieve(kind, share, [...this.addresses.values()])
    else if (!isGreedy) this.relieve(kind, share, [share.address])
    const isAdmitted = this.fits(share, kind, amount)
    if (!isAdmitted) this.onShed(kind)
    return isAdmitted
  }

  private fits(share: Share, kind: BoundKind, amount: number): boolean {
    const free = this.max[kind] - this.sums[kind].used - amount
    return share.address.sums[kind].used + amount <= free
  }

  /** Sheds those that hold the most, of addresses that hold the most; the newest first. */
  private relieve(kind: BoundKind, spared: Share, addresses: readonly Address[]): void {
    const sum = addresses.reduce((used, { sums }) => used + sums[kind].used, 0)
    const until = sum * (1 - RELIEF)
    const victims = addresses
      .flatMap(({ shares }) => [...shares].reverse())
      .filter((one) => one !== spared && one.parts[kind].used > 0)
      .map((one) => ({ one, used: one.parts[kind].used, ofAddress: one.address.sums[kind].used }))
      .sort((a, b) => b.ofAddress - a.ofAddress || b.used - a.used)
    let left = sum
    for (const { one, used } of victims) {
      if (left <= until) return
      left -= used
      this.onShed(kind)
      one.shed()
    }
  }
}
