// Opens many connections that each send incomplete headers, so that the edge exhausts the memory
// that it may use.
import { connect, type Socket } from 'node:net'

const FIELDS = 12
const FIELD_BYTES = 1000

/**
 * Opens a connection every `everyMs` and replaces those that are closed. Returns a function that
 * closes all.
 */
export function openUnfinishedRequests(
  at: { readonly host: string; readonly port: number },
  { connections, everyMs }: { connections: number; everyMs: number },
): () => void {
  const fields = Array.from(
    { length: FIELDS },
    (_, i) => `X-${String(i)}: ${'x'.repeat(FIELD_BYTES)}`,
  )
  const unfinished = ['GET / HTTP/1.1', 'Host: short.test', ...fields, ''].join('\r\n')
  const open = new Set<Socket>()
  const timer = setInterval(() => {
    if (open.size === connections) return
    const socket = connect(at, () => socket.write(unfinished))
    open.add(socket)
    socket.on('error', () => undefined) // 'close' follows
    socket.on('close', () => open.delete(socket))
    socket.resume()
  }, everyMs)
  return () => {
    clearInterval(timer)
    for (const socket of open) socket.destroy()
  }
}
