// The floor of redirecting: bare node:http by default settings, one handler, the bytes it is told.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

process.once('message', (response: { status: number; headers: string[]; body: string }) => {
  const { status, headers, body } = response
  const server = createServer((_req, res) => {
    res.writeHead(status, headers)
    res.end(body)
  })
  server.listen(0, '127.0.0.1', () => {
    process.send?.({ port: (server.address() as AddressInfo).port })
  })
})
process.on('disconnect', () => process.exit())
