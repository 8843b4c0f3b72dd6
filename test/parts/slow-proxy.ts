// A TCP proxy in front of a part that hands on what the part says with a delay, as a slow network
// or a busy server would.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A running proxy. */
export interface SlowProxy {
  readonly port: number
  /** How long what the part says is held back from now on. */
  delay(ms: number): void
  close(): Promise<void>
}

/** Starts one in front of `port` of this machine, without any delay. */
export async function startSlowProxy(port: number): Promise<SlowProxy> {
  let delayMs = 0
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const part = connect({ port, host: '127.0.0.1', noDelay: true })
    for (const socket of [client, part]) {
      open.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        open.delete(socket)
        client.destroy()
        part.destroy()
      })
    }
    client.on('data', (chunk: Buffer) => part.write(chunk))
    part.on('data', (chunk: Buffer) => {
      setTimeout(() => client.write(chunk), delayMs)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    delay(ms) {
      delayMs = ms
    },
    async close() {
      server.close()
      for (const socket of open) socket.destroy()
      await once(server, 'close')
    },
  }
}
