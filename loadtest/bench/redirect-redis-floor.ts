// The floor of redirecting from Redis: bare node:http, one GET by ioredis a request, and the bytes
// that it is told.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import type { FloorResponse } from './follow-links.ts'

/** What the floor is told. */
export interface RedisFloorTask extends FloorResponse {
  readonly redisPort: number
  /** Before the code in a key. */
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
