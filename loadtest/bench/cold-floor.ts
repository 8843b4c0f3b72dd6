// The floor for cold codes: bare node:http, the service's own read of the link through the driver,
// and a fixed response. It neither reads nor fills a cache.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, ExecutionProfile, types } from 'cassandra-driver'
import type { FloorResponse } from './redirect-load.ts'

/** The task of the floor: where to read, and the response. */
export interface ColdFloorTask extends FloorResponse {
  readonly contactPoints: readonly string[]
  readonly port: number
  readonly localDc: string
  readonly keyspace: string
}

const READ = `SELECT short_code, long_url, created_at, expires_at, creator_id, writer_id,
  disabled_at, deleted_at FROM links WHERE short_code = ?`

const majority = new ExecutionProfile('majority', { consistency: types.consistencies.localQuorum })
const options = { prepare: true, isIdempotent: true, executionProfile: 'majority' }

async function serve(task: ColdFloorTask): Promise<number> {
  const { status, headers, body } = task
  const client = new Client({
    contactPoints: [...task.contactPoints],
    localDataCenter: task.localDc,
    keyspace: task.keyspace,
    protocolOptions: { port: task.port },
    profiles: [majority],
  })
  await client.connect()
  const server = createServer((req, res) => {
    client.execute(READ, [(req.url ?? '').slice(1)], options).then(
      ({ rows }) => {
        res.writeHead(rows.length === 0 ? 404 : status, [...headers])
        res.end(body)
      },
      () => {
        res.writeHead(503)
        res.end()
      },
    )
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return (server.address() as AddressInfo).port
}

process.once('message', (task: ColdFloorTask) => {
  void serve(task).then((port) => process.send?.({ port }))
})
process.on('disconnect', () => process.exit())
