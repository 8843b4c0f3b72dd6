// A block of loopback addresses, 127.x.y.*, with two ports that are free on all of them, so that
// dependencies conflict neither with one another nor with servers of the machine.
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

const TRIES_MAX = 50
/** Lower ports are for `reservePorts`, on every address. */
const PORT_MIN = 21_000
/** Higher ports are ephemeral ports of the system. */
const PORT_MAX = 32_000

/** A block, which is reserved until `release`. */
export interface LoopbackBlock {
  /** The addresses with the requested last octets, in order. */
  readonly addresses: readonly string[]
  /** A port that is free on every address. */
  readonly port: number
  /** Another port that is free on every address. */
  readonly storagePort: number
  release(): Promise<void>
}

/** Reserves a block, with addresses that have these last octets. Throws if none is free. */
export async function reserveAddresses(octets: readonly number[]): Promise<LoopbackBlock> {
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const net = `127.${String(1 + randomBelow(254))}.${String(randomBelow(256))}`
    const port = PORT_MIN + randomBelow(PORT_MAX - PORT_MIN)
    const storagePort = port + 1
    // The process that listens on the last address of a block owns the block.
    const reservation = await listenOn(`${net}.254`, PORT_MIN)
    if (reservation === undefined) continue
    const addresses = octets.map((octet) => `${net}.${String(octet)}`)
    const listeners = addresses.flatMap((address) =>
      [port, storagePort].map((one) => ({ address, port: one })),
    )
    const isFree = await Promise.all(listeners.map((one) => canListen(one)))
    if (isFree.every(Boolean)) {
      return { addresses, port, storagePort, release: () => close(reservation) }
    }
    await close(reservation)
  }
  throw new Error('no block of loopback addresses is free (only Linux has such blocks)')
}

/** A random integer from 0 to `below` - 1. */
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

/** A server on this address and port; undefined if they are in use or unavailable. */
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
