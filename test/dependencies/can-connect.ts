// Checks whether a process listens on a port of this machine. Sends nothing.
import { connect } from 'node:net'

const CONNECT_MS_MAX = 5000

/** Connects to `port` and closes the connection; `false` if it fails or times out. */
export function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: CONNECT_MS_MAX })
    const settle = (isConnected: boolean) => {
      socket.destroy()
      resolve(isConnected)
    }
    socket.on('connect', () => {
      settle(true)
    })
    socket.on('timeout', () => {
      settle(false)
    })
    socket.on('error', () => {
      settle(false)
    })
  })
}
