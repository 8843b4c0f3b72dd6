// Loopback ports for processes that start later or restart on the same port: below the system's
// ephemeral range, so that no connection takes one in between, and below the ports of
// loopback-block.ts, which are for single addresses.
import { canListen, randomBelow } from './loopback-block.ts'

const PORT_MIN = 10_000
const PORT_MAX = 21_000
const TRIES_MAX = 50

/** Ports that this process reserved: a port is free until its server has started. */
const claimed = new Set<number>()

/** So many ports in a row that are free now. Throws where there are none. */
export async function reservePorts(count: number): Promise<readonly number[]> {
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

/** A port that is free now, and that no other caller gets. Throws if there is none. */
export async function freePort(): Promise<number> {
  const [port = 0] = await reservePorts(1)
  return port
}
