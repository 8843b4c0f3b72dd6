// Loopback addresses for a dependency that needs several: a block 127.x.y.* with two ports that are
// free on all of them, so that no two dependencies, nor a server of the machine, conflict.
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

const TRIES_MAX = 50
/** The least port that is taken; those below are for `claimPorts`, on every address. */
const PORT_MIN = 21_000
/** Above it the system hands out ports by itself. */
const PORT_MAX = 32_000

/** A block that is reserved until `release`. */
export interface LoopbackBlock {
  /** One for each of the last parts asked for, in their order. */
  readonly addresses: readonly string[]
  /** Free on every one of them, as is the other. */
  readonly port: number
  readonly storagePort: number
  release(): Promise<void>
}

/** Claims a block; `parts` are the last parts of the addresses that must be free. */
export async function reserveAddresses(parts: readonly number[]): Promise<LoopbackBlock> {
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const net = `127.${String(1 + randomBelow(254))}.${String(randomBelow(256))}`
    const port = PORT_MIN + randomBelow(PORT_MAX - PORT_MIN)
    const storagePort = port + 1
    // The process that listens on the block's last address owns the block.
    const claim = await listenOn(`${net}.254`, PORT_MIN)
    if (claim === undefined) continue
    const addresses = parts.map((part) => `${net}.${String(part)}`)
    const wanted = addresses.flatMap((address) =>
      [port, storagePort].map((one) => ({ address, port: one })),
    )
    const isFree = await Promise.all(wanted.map((one) => canListen(one)))
    if (isFree.every(Boolean)) {
      return { addresses, port, storagePort, release: () => close(claim) }
    }
    await close(claim)
  }
  throw new Error('there is no free block of addresses on the loopback (Linux has them)')
}

/** A whole number from 0 up to, and without, `below`. */
export const randomBelow = (below: number): number => Math.floor(Math.random() * below)

/** Whether the port is free on the address. */
export async function canListen({
  address,
  port,
}: {
  address: string
  port: number
}): Promise<boolean> {
  const server = await listenOn(address, port)
  if (server === undefined) return false
  await close(server)
  return true
}

/** A server that listens there; undefined if the address is in use or unavailable. */
async function listenOn(host: string, port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy())
  server.listen(port, host)
  return once(server, 'listening').then(
    () => server,
    () => undefined,
  )
}

async function close(server: Server): Promise<void> {
  server.close()
  await once(server, 'close')
}
