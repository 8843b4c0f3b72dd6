// The list of the benchmark of blocked targets: a million entries, most of them hosts.

/** The number of entries. */
export const ENTRIES = 1_000_000
/** One of this many entries is a URL. */
const URL_EVERY = 20

/** An entry; all are different. */
export function entryOf(i: number): string {
  return i % URL_EVERY === 0 ? `${hostOf(i)}/bad/${i}` : hostOf(i)
}

/** A host that the list blocks. */
export function blockedHost(i: number): string {
  return hostOf((i * URL_EVERY + 1) % ENTRIES)
}

function hostOf(i: number): string {
  const scattered = Math.imul(i, 0x9e3779b1) >>> 0 // an odd factor: the hosts are different
  return `${scattered.toString(36)}-shop.example${i % 1000}.${i % 2 === 0 ? 'com' : 'net'}`
}
