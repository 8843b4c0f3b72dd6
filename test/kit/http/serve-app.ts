// Serves an Express app on a loopback port, for tests of single routes.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Express } from 'express'

/** A served app. */
export interface ServedApp {
  readonly port: number
  /** Such as `http://127.0.0.1:1234`. */
  readonly url: string
  /** Closes the server and all connections. */
  readonly close: () => void
}

/** Serves an app on a free port. */
export async function serveApp(app: Express): Promise<ServedApp> {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { port, url: `http://127.0.0.1:${port}`, close }
}
