// The floor for redirects: bare node:http with default settings and one handler that sends a fixed
// response.
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
