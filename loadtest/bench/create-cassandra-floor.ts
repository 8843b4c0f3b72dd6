// The floor for creates on Cassandra: bare node:http, the parsed body, and the service's own insert
// through the driver with a random code. No validation, no pool, no claims.
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, ExecutionProfile, policies, types } from 'cassandra-driver'

/** The task of the floor: where to insert, and the headers of its responses. */
export interface CassandraFloorTask {
  readonly contactPoints: readonly string[]
  readonly port: number
  readonly localDc: string
  readonly keyspace: string
  /** Headers of a response: names and values, alternating. */
  readonly headers: readonly string[]
}

const INSERT = `INSERT INTO links (short_code, long_url, created_at, expires_at, creator_id,
  writer_id, disabled_at, deleted_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?`

const once = new ExecutionProfile('lwt', {
  retry: new policies.retry.FallthroughRetryPolicy(),
  consistency: types.consistencies.localQuorum,
  serialConsistency: types.consistencies.localSerial,
})

async function serve(task: CassandraFloorTask): Promise<number> {
  const client = new Client({
    contactPoints: [...task.contactPoints],
    localDataCenter: task.localDc,
    keyspace: task.keyspace,
    protocolOptions: { port: task.port },
    profiles: [once],
  })
  await client.connect()
  const server = createServer((req, res) => {
    readText(req, (text) => void create({ client, task, text, res }))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return (server.address() as AddressInfo).port
}

async function create(given: {
  client: Client
  task: CassandraFloorTask
  text: string
  res: ServerResponse
}): Promise<void> {
  const { client, task, text, res } = given
  const { long_url: longUrl } = JSON.parse(text) as { long_url: string }
  const code = randomBytes(5).toString('base64url')
  const none = undefined
  const values = [code, longUrl, new Date(), none, none, randomUUID(), none, none, 0]
  const result = await client.execute(INSERT, values, { prepare: true, executionProfile: 'lwt' })
  const body = JSON.stringify({ short_url: `http://s.example/${code}`, expires_at: null })
  res.writeHead(result.wasApplied() ? 201 : 409, [...task.headers])
  res.end(body)
}

function readText(req: IncomingMessage, then: (text: string) => void): void {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    then(Buffer.concat(chunks).toString())
  })
}

process.once('message', (task: CassandraFloorTask) => {
  void serve(task).then((port) => process.send?.({ port }))
})
process.on('disconnect', () => process.exit())
