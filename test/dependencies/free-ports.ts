// Loopback ports for processes that start later or restart on the same port: below the ephemeral
// range of the system, so that no connection uses one in the meantime, and below the ports of
// loopback-block.ts.
import { canListen, randomBelow } from './loopback-block.ts'

/** TEST_GROUP is 0 or 1 if two groups of tests run side by side: each has its own ports. */
const GROUP = Number(process.env['TEST_GROUP'] ?? '0')
const PORTS = 5_500
const PORT_MIN = 10_000 + GROUP * PORTS
const PORT_MAX = PORT_MIN + PORTS
const TRIES_MAX = 50

/** The ports that this process has reserved, which are free until their servers start. */
const reserved = new Set<number>()

/** Reserves `count` consecutive free ports. Throws if none are found. */
export async function reservePorts(count: number): Promise<readonly number[]> {
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const first = PORT_MIN + randomBelow(PORT_MAX - PORT_MIN - count)
    const ports = Array.from({ length: count }, (_, i) => first + i)
    if (ports.some((port) => reserved.has(port))) continue
    const isFree = await Promise.all(ports.map((port) => canListen({ address: '0.0.0.0', port })))
    if (!isFree.every(Boolean)) continue
    for (const port of ports) reserved.add(port)
    return ports
  }
  throw new Error(`no ${String(count)} consecutive ports are free`)
}

/** Reserves a free port. Throws if none is found. */
export async function freePort(): Promise<number> {
  const [port = 0] = await reservePorts(1)
  return port
}
