// Very many connections that each begin a request and never end it: what an edge holds in memory
// for them is what a test wants to be too much.
import { connect, type Socket } from 'node:net'

const FIELDS = 12
const FIELD_BYTES = 1000

/** Opens one every `everyMs`, and others for those that are cut off. What is returned ends it. */
export function gatherCrowd(
  at: { readonly host: string; readonly port: number },
  { connections, everyMs }: { connections: number; everyMs: number },
): () => void {
  const fields = Array.from(
    { length: FIELDS },
    (_, i) => `X-${String(i)}: ${'x'.repeat(FIELD_BYTES)}`,
  )
  const begun = ['GET / HTTP/1.1', 'Host: short.test', ...fields, ''].join('\r\n')
  const open = new Set<Socket>()
  const timer = setInterval(() => {
    if (open.size === connections) return
    const socket = connect(at, () => socket.write(begun))
    open.add(socket)
    socket.on('error', () => undefined) // told by its close
    socket.on('close', () => open.delete(socket))
    socket.resume()
  }, everyMs)
  return () => {
    clearInterval(timer)
    for (const socket of open) socket.destroy()
  }
}
