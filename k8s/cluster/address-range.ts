// Subtracts IPv4 ranges in CIDR notation from one another. Pure.

interface Range {
  /** The first address, as a number below 2^32. */
  readonly first: number
  /** Length of the prefix that all addresses share, in bits. */
  readonly bits: number
}

const BITS_MAX = 32

/** The ranges that cover `cidr` without `except`; empty unless `cidr` is IPv4. */
export function subtractRanges(cidr: string, except: readonly string[]): readonly string[] {
  const range = parseRange(cidr)
  if (range === undefined) return []
  const taken = except.map(parseRange).filter((one) => one !== undefined)
  return subtract(range, taken).map(renderRange)
}

function subtract(range: Range, taken: readonly Range[]): readonly Range[] {
  const touching = taken.filter((one) => isWithin(one, range) || isWithin(range, one))
  if (touching.length === 0) return [range]
  if (touching.some((one) => isWithin(range, one))) return []
  // The excluded ranges are within this one: split it in halves.
  const bits = range.bits + 1
  const halves = [range.first, range.first + 2 ** (BITS_MAX - bits)]
  return halves.flatMap((first) => subtract({ first, bits }, touching))
}

function isWithin(inner: Range, outer: Range): boolean {
  if (inner.bits < outer.bits) return false
  return Math.floor(inner.first / sizeOf(outer)) === Math.floor(outer.first / sizeOf(outer))
}

const sizeOf = ({ bits }: Range) => 2 ** (BITS_MAX - bits)

function parseRange(cidr: string): Range | undefined {
  const [, address = '', bits = ''] = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(cidr) ?? []
  if (address === '') return undefined
  const number = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
  const range = { first: number, bits: Number(bits) }
  return { ...range, first: Math.floor(number / sizeOf(range)) * sizeOf(range) }
}

function renderRange({ first, bits }: Range): string {
  const octets = [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256)
  return `${octets.join('.')}/${bits}`
}
