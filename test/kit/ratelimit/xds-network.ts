// The network between a limiter and its xDS server: TCP servers of other protocols, and a proxy
// that forwards the server's bytes as the test scripts.
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP server of a test. */
export interface Listener {
  readonly port: number
  /** Destroys its connections, and closes the port. */
  readonly close: () => void
}

/** Listens on loopback. `port` 0: a free port. */
export async function listenOn(port: number, server: Server): Promise<Listener> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/** A proxy of the server at `port` that passes the server's bytes to `forward`, in their order. */
export function startProxy(
  port: number,
  forward: (bytes: Buffer, client: Socket) => Promise<void>,
): Promise<Listener> {
  const proxy = createServer({ noDelay: true }, (client) => {
    const upstream = connect(port, '127.0.0.1')
    client.pipe(upstream)
    let forwarded = Promise.resolve()
    upstream.on('data', (bytes: Buffer) => {
      forwarded = forwarded.then(() => forward(bytes, client))
    })
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined) // the other end has reset the connection
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
      })
    }
  })
  return listenOn(0, proxy)
}
