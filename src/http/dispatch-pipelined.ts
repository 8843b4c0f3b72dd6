// Handles the requests of each connection one by one, although Node.js parses pipelined requests as
// they arrive. Each is handled in a separate turn after the previous response, so that one client
// cannot occupy the event loop for seconds. The number of waiting requests is bounded.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { closesAfterResponses } from './handle-client-error.ts'
import { holdReading, isClosing, releaseReading } from './lingering-close.ts'

/**
 * While this many requests of a connection wait, the rest is not read: only what has been read
 * already, at most 64 KiB, is still parsed.
 */
const WAITING_MAX = 32

type Handle = (req: IncomingMessage, res: ServerResponse) => void

/** Wraps the handler of requests. */
export function dispatchPipelined(handle: Handle): Handle {
  const waiting = new WeakMap<Socket, number>()
  const count = (socket: Socket, change: number): number => {
    const changed = (waiting.get(socket) ?? 0) + change
    waiting.set(socket, changed)
    return changed
  }
  return (req, res) => {
    if (res.socket !== null) {
      handle(req, res)
      return
    }
    const { socket } = req
    if (count(socket, 1) === WAITING_MAX) holdReading(socket)
    res.once('socket', () => {
      const mayRead = count(socket, -1) === WAITING_MAX - 1
      if (mayRead && !isClosing(socket) && !closesAfterResponses(socket)) releaseReading(socket)
      setImmediate(handle, req, res)
    })
  }
}
