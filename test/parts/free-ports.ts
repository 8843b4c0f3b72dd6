// Ports of the loopback for processes that begin later, or anew on the port they had: below those
// that the system hands out by itself, so that no connection takes one in between, and below those
// of loopback-block.ts, which are for single addresses.
import { canListen, randomBelow } from './loopback-block.ts'

const PORT_MIN = 10_000
const PORT_MAX = 21_000
const TRIES_MAX = 50

/** What this process was given: a port is free until whoever it is for has begun. */
const claimed = new Set<number>()

/** So many ports in a row that are free now. Throws where there are none. */
export async function claimPorts(count: number): Promise<readonly number[]> {
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const first = PORT_MIN + randomBelow(PORT_MAX - PORT_MIN - count)
    const ports = Array.from({ length: count }, (_, i) => first + i)
    if (ports.some((port) => claimed.has(port))) continue
    const isFree = await Promise.all(ports.map((port) => canListen({ address: '0.0.0.0', port })))
    if (!isFree.every(Boolean)) continue
    for (const port of ports) claimed.add(port)
    return ports
  }
  throw new Error(`there are no ${String(count)} free ports in a row`)
}

/** A port that is free now, and is given to nobody else. Throws where there is none. */
export async function freePort(): Promise<number> {
  const [port = 0] = await claimPorts(1)
  return port
}
