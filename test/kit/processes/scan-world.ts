// Scans all that the processes of the service have written and stored: logs, metrics, status pages
// and responses of the admin APIs, both Redis, and all tables of Cassandra.
import { readFile } from 'node:fs/promises'
import cassandra from 'cassandra-driver'
import { clientOf } from '../../dependencies/redis.ts'
import type { SecretScan } from '../secret-scan.ts'
import type { KeyedWorld } from './keyed-world.ts'

const RESPONSE_MS_MAX = 60_000
const PAGE_ROWS = 1000
const KEYSPACE = 'curtail'
const REDIS_KEYS_MAX = 1_000_000

/** The name without the number of a pod. */
const roleOf = (name: string) => name.replace(/-\d+\b/, '')

/** Scans the logs. */
export async function scanLogs({ logs }: KeyedWorld, scan: SecretScan): Promise<void> {
  for (const { name, path } of logs) {
    scan.add({ kind: `logs of ${roleOf(name)}`, name }, await readFile(path))
  }
}

/** The body of a page. Throws if its status is not 200. */
async function pageOf(url: string, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(RESPONSE_MS_MAX) })
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${url} returned ${response.status}: ${body}`)
  return body
}

/** Scans the metrics of all processes, in both formats. */
export async function scanMetrics(world: KeyedWorld, scan: SecretScan): Promise<void> {
  const { creates, requiring, redirects, limiter, edge } = world
  const formats = [{}, { Accept: 'application/openmetrics-text' }]
  for (const headers of formats) {
    for (const pod of [...creates, requiring, ...redirects, limiter]) {
      const url = `${adminUrlOf(pod)}/metrics`
      const source = { kind: `metrics of ${roleOf(pod.name)}`, name: pod.name }
      scan.add(source, await pageOf(url, headers))
    }
  }
  const page = await pageOf(`${edge.metricsUrl}/stats/prometheus`)
  scan.add({ kind: 'metrics of envoy', name: 'envoy-1' }, page)
}

function adminUrlOf(pod: { now(): { readonly ready: Readonly<Record<string, unknown>> } }): string {
  return `http://127.0.0.1:${Number(pod.now().ready['adminPort'])}`
}

/** Scans the status pages, and the responses of the admin APIs, also all links. */
export async function scanPages(
  world: KeyedWorld,
  scan: SecretScan,
  codes: readonly string[],
): Promise<void> {
  const { creates, requiring, redirects, limiter, edge } = world
  for (const pod of [...creates, requiring, ...redirects]) {
    for (const path of ['/livez', '/readyz']) {
      const body = await pageOf(`${adminUrlOf(pod)}${path}`)
      scan.add({ kind: `status of ${roleOf(pod.name)}`, name: pod.name }, body)
    }
  }
  const { debugPort } = limiter.now().ready
  for (const path of ['/', '/rlconfig', '/stats', '/top']) {
    const body = await pageOf(`http://127.0.0.1:${Number(debugPort)}${path}`)
    scan.add({ kind: 'status of ratelimit', name: path }, body)
  }
  const envoyAdmin = edge.envoy.addresses.replace(/^.* /, '')
  for (const path of ['/config_dump', '/stats', '/clusters', '/server_info', '/listeners']) {
    scan.add({ kind: 'status of envoy', name: path }, await pageOf(`${envoyAdmin}${path}`))
  }
  for (const pod of [...creates, requiring]) {
    const read = async (path: string) => {
      const response = await pod.now().admin({ path })
      const body = await response.text()
      if (response.status !== 200) throw new Error(`${path} returned ${response.status}: ${body}`)
      scan.add({ kind: 'responses of the admin API', name: pod.name }, body)
      return body
    }
    await read('/pools')
    for (const code of codes) await read(`/links/${code}`)
    for (let after = ''; ;) {
      const page = await read(`/links?limit=${PAGE_ROWS}${after}`)
      const { next } = JSON.parse(page) as { next: string | null }
      if (next === null) break
      after = `&after=${next}`
    }
  }
}

/** Scans all keys and values of both Redis, and their slow logs. */
export async function scanRedis({ redisPorts }: KeyedWorld, scan: SecretScan): Promise<void> {
  for (const [name, port] of Object.entries(redisPorts)) {
    const source = { kind: `Redis, ${name}`, name }
    const client = clientOf(port)
    try {
      let cursor = '0'
      let count = 0
      do {
        const [next, keys] = await client.scanBuffer(cursor, 'COUNT', PAGE_ROWS)
        for (const key of keys) scan.add(source, Buffer.concat([key, await valueOf(client, key)]))
        count += keys.length
        cursor = next.toString()
      } while (cursor !== '0' && count <= REDIS_KEYS_MAX)
      if (cursor !== '0') throw new Error(`${name} has more than ${REDIS_KEYS_MAX} keys`)
      const slowLog = JSON.stringify(await client.call('SLOWLOG', 'GET', PAGE_ROWS))
      scan.add({ kind: commandsOf(name), name }, slowLog)
    } finally {
      client.disconnect()
    }
  }
}

const commandsOf = (name: string) => `commands of Redis, ${name}`

/** Scans every command that both Redis receive, until it is stopped. */
export async function watchRedis({ redisPorts }: KeyedWorld, scan: SecretScan) {
  const watches = Object.entries(redisPorts).map(async ([name, port]) => {
    const client = clientOf(port)
    const monitor = await client.monitor()
    monitor.on('monitor', (_: string, command: readonly string[]) => {
      scan.add({ kind: commandsOf(name), name }, command.join(' '))
    })
    return () => {
      for (const one of [monitor, client]) one.disconnect()
    }
  })
  const closing = await Promise.all(watches)
  return {
    stop: () => {
      for (const close of closing) close()
    },
  }
}

/** The value of a key; empty if it has expired. DUMP would compress it. */
async function valueOf(client: ReturnType<typeof clientOf>, key: Buffer): Promise<Buffer> {
  const type = await client.type(key)
  if (type === 'none') return Buffer.alloc(0)
  if (type === 'string') return (await client.getBuffer(key)) ?? Buffer.alloc(0)
  const readers: Readonly<Record<string, () => Promise<unknown>>> = {
    hash: () => client.hgetall(key),
    list: () => client.lrange(key, 0, -1),
    set: () => client.smembers(key),
    zset: () => client.call('ZRANGE', key, 0, -1, 'WITHSCORES'),
  }
  const read = readers[type]
  if (read === undefined) throw new Error(`a key of Redis has the type ${type}`)
  return Buffer.from(JSON.stringify(await read()))
}

/** A row of the table `links`. */
export interface LinkColumns {
  readonly short_code: string
  readonly long_url: string
  readonly creator_id: string | null
}

/** Scans all columns of all tables of the keyspace; resolves to the links. */
export async function scanCassandra(world: KeyedWorld, scan: SecretScan): Promise<LinkColumns[]> {
  const client = openCassandraClient(world)
  const links: LinkColumns[] = []
  try {
    await client.connect()
    const tables = await client.execute(
      'SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?',
      [KEYSPACE],
      { prepare: true },
    )
    for (const { table_name: table } of tables.rows as unknown as { table_name: string }[]) {
      const options = { prepare: true, fetchSize: PAGE_ROWS, readTimeout: RESPONSE_MS_MAX }
      const result = await client.execute(`SELECT * FROM ${KEYSPACE}.${table}`, [], options)
      for await (const row of result) {
        for (const value of row.values())
          scan.add({ kind: 'Cassandra', name: table }, contentOf(value))
        if (table === 'links') links.push(linkOf(row))
      }
    }
    return links
  } finally {
    await client.shutdown()
  }
}

/** Opens a client of the keyspace, which connects at its first request. */
export function openCassandraClient({ cassandra: cluster }: Pick<KeyedWorld, 'cassandra'>) {
  return new cassandra.Client({
    contactPoints: [...cluster.contactPoints],
    protocolOptions: { port: cluster.port },
    localDataCenter: cluster.localDc,
    keyspace: KEYSPACE,
  })
}

function linkOf(row: cassandra.types.Row): LinkColumns {
  const {
    short_code,
    long_url,
    creator_id: creator,
  } = row as unknown as {
    short_code: string
    long_url: string
    creator_id: cassandra.types.Long | null
  }
  return { short_code, long_url, creator_id: creator === null ? null : creator.toString() }
}

function contentOf(value: unknown): string | Buffer {
  return Buffer.isBuffer(value)
    ? value
    : ((value as { toString(): string } | null)?.toString() ?? '')
}
