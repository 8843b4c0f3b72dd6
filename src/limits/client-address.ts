// The key by which limits distinguish clients: an IPv4 address, or the /64 network of an IPv6
// address, because a client may use any address in it. Formatted like Envoy's masked addresses.

const GROUPS = 8
/** Groups of 16 bits in the prefix of a /64. */
const GROUPS_KEPT = 4

/** The client key of a peer address: `203.0.113.7/32` or `2001:db8:1:2::/64`; others unchanged. */
export function clientKeyOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return `${mapped}/32`
  if (!address.includes(':')) return address.includes('.') ? `${address}/32` : address
  const [bare = ''] = address.split('%') // the zone names an interface of this machine
  const kept = groupsOf(bare).slice(0, GROUPS_KEPT)
  while (kept.at(-1) === 0) kept.pop()
  return `${kept.map((group) => group.toString(16)).join(':')}::/64`
}

/** The eight groups of an address, with `::` expanded. */
function groupsOf(address: string): number[] {
  const [before = '', after] = address.split('::')
  const numbers = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const leading = numbers(before)
  if (after === undefined) return leading
  const trailing = numbers(after)
  const zeros = Math.max(0, GROUPS - leading.length - trailing.length)
  return [...leading, ...Array.from({ length: zeros }, () => 0), ...trailing]
}
