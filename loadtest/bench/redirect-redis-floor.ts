// The floor for redirects from Redis: bare node:http, one GET over ioredis per request, and a fixed
// response.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import type { FloorResponse } from './redirect-load.ts'

/** The task of the floor: where to read, and the response. */
export interface RedisFloorTask extends FloorResponse {
  readonly redisPort: number
  /** The key's prefix before the code. */
  readonly prefix: string
}

process.once('message', (task: RedisFloorTask) => {
  const { status, headers, body, prefix } = task
  const redis = new Redis({ host: '127.0.0.1', port: task.redisPort })
  const server = createServer((req, res) => {
    redis.get(prefix + (req.url ?? '').slice(1)).then(
      (value) => {
        res.writeHead(value === null ? 404 : status, [...headers])
        res.end(body)
      },
      () => {
        res.writeHead(503)
        res.end()
      },
    )
  })
  server.listen(0, '127.0.0.1', () => {
    process.send?.({ port: (server.address() as AddressInfo).port })
  })
})
process.on('disconnect', () => process.exit())
