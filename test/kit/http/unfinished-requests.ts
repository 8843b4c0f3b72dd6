// Opens many connections that each send incomplete headers, so that the edge exhausts the memory
// that it may use.
import { connect, type Socket } from 'node:net'

/** Connections opened at a time. */
const DUE_MAX = 100
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
  const openOne = () => {
    const socket = connect(at, () => socket.write(unfinished))
    open.add(socket)
    socket.on('error', () => undefined) // 'close' follows
    socket.on('close', () => open.delete(socket))
    socket.resume()
  }
  let lastMs = performance.now()
  const timer = setInterval(() => {
    // On a busy machine the timer fires seldom; the rate must not fall.
    const due = Math.min(DUE_MAX, Math.floor((performance.now() - lastMs) / everyMs))
    for (let n = 0; n < due && open.size < connections; n++) openOne()
    if (due > 0) lastMs = performance.now()
  }, everyMs)
  return () => {
    clearInterval(timer)
    for (const socket of open) socket.destroy()
  }
}
