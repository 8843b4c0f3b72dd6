// The listener of the xDS server: a port, optional TLS with files that are re-read, and a limit on
// connections. Implements no HTTP/2.
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { OperatorError } from '../../process/role.ts'
import type { TlsFiles } from '../../process/tls-files.ts'
import { createSecureServer } from '../secure-server.ts'

/** Options of a listener. */
export interface ListenOptions {
  /** 0: a free port. */
  readonly port: number
  /** `undefined`: plaintext. With `authorities`, clients need a certificate. */
  readonly tls: TlsFiles | undefined
  /** Maximum number of connections, including those in a TLS handshake. */
  readonly connectionsMax: number
  /** Called with each connection, after its TLS handshake. */
  readonly onConnection: (socket: Socket) => void
  /** Called when a TLS handshake fails. */
  readonly onTlsFault: (error: Error, socket: Socket) => void
  /** Called with errors of the listener, such as unusable TLS files. */
  readonly onError: (error: unknown) => void
}

/** An open listener. */
export interface Listener {
  readonly port: number
  /** Stops accepting; resolves when all connections are closed, at the latest by the deadline. */
  close(msMax: number): Promise<void>
}

/** Opens the listener. Throws OperatorError. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { port, tls } = options
  const { server, stopWatching } = tls
    ? await createTlsListener(tls, options)
    : { server: createServer(options.onConnection), stopWatching: undefined }
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.maxConnections = options.connectionsMax
  const opened = new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code ?? error.message
      reject(new OperatorError(`Cannot serve xDS on port ${port}: ${reason}; change the port`))
    })
    server.listen(port, resolve)
  })
  await opened.catch(async (error: unknown) => {
    await stopWatching?.()
    throw error
  })
  server.on('error', options.onError) // emitted if a connection cannot be accepted
  return {
    port: (server.address() as AddressInfo).port,
    async close(msMax) {
      const closed = new Promise<void>((resolve) => {
        server.close(() => {
          resolve()
        })
      })
      const timer = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, msMax)
      await stopWatching?.()
      await closed
      clearTimeout(timer)
    },
  }
}

async function createTlsListener(files: TlsFiles, options: ListenOptions) {
  const secure = await createSecureServer(files, options.onError)
  secure.server.on('secureConnection', options.onConnection)
  secure.server.on('tlsClientError', options.onTlsFault)
  return secure
}
