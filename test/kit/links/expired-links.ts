// A round of links that expire while their rows still exist: they redirect until their expiry and
// are not found from then on, whether memory, the cache or the store is read.
import cassandra from 'cassandra-driver'
import type { LinkStore } from '../../../src/links/link-store.ts'
import { parseConfig } from '../../../src/config/config.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { openCassandra } from '../../../src/stores/cassandra/client.ts'
import { createCassandraLinkStore } from '../../../src/stores/cassandra/link-store.ts'
import { cassandraSettings } from '../../../src/stores/cassandra/settings.ts'
import { keyOf } from '../../../src/stores/redis/link-cache-entry.ts'
import { environmentOf, quiet } from '../../contract/open-cassandra.ts'
import { sampleLink } from '../../contract/sample-link.ts'
import { clientOf } from '../../dependencies/redis.ts'
import type { HttpClient } from '../http/http-client.ts'
import {
  resolveCode,
  isRedirectTo,
  openHttpClients,
  describeResponse,
} from '../http/machine-clients.ts'
import type { Machine, ManyMachines } from '../processes/many-machines.ts'

const KEYSPACE = 'curtail'
/** Shorter than a process caches a link, so that it is in memory at its expiry. */
const LIFE_MS = 3500
const LINKS = 6
const ROUNDS_MAX = 3
/** How soon a resolved link is in the cache, if at all. */
const CACHED_MS_MAX = 500
const QUARANTINE_SECONDS_MIN = 30 * 86_400

interface Expiring {
  readonly code: string
  readonly target: string
  readonly endMs: number
}

/**
 * The result of a round: responses before and after the expiry, and the tiers that they came from.
 */
export interface ExpiryResult {
  readonly before: number
  readonly after: number
  readonly tiers: readonly string[]
}

/**
 * Runs one round of three links that expire at the same time, and another if a tier timed out and
 * the result came from the tier behind it. Throws if a response is wrong.
 */
export async function expireRound(machines: ManyMachines): Promise<ExpiryResult> {
  let round = await runRound(machines)
  for (let rounds = 1; rounds < ROUNDS_MAX && hasTimedOut(round); rounds++) {
    round = await runRound(machines)
  }
  return round
}

/**
 * Whether the cache or the store timed out, so that the tier behind it was read, as designed; or
 * the links expired before one redirected or was cached, after a pause of the machine.
 */
function hasTimedOut({ before, tiers: [, inCache = '', inStore = ''] }: ExpiryResult): boolean {
  return before === 0 || ['store', 'replica'].includes(inCache) || inStore === 'replica'
}

async function runRound(machines: ManyMachines): Promise<ExpiryResult> {
  const [first, second] = machines.redirects
  const readers = openHttpClients(machines.redirects)
  const [one, other] = readers.all
  if (first === undefined || second === undefined) throw new Error('too few processes')
  if (one === undefined || other === undefined) throw new Error('no client')
  const { links: store, close } = await openLinks(machines)
  const redis = clientOf(machines.redis.port)
  try {
    const endMs = Date.now() + LIFE_MS
    const [popular, unresolved, ...others] = await insertLinks(store, endMs)
    if (popular === undefined || unresolved === undefined) throw new Error('too few links')
    // One process resolves the first link without pause, so that it is in memory at its expiry.
    const polling = pollOverExpiry(one, popular)
    polling.catch(() => undefined) // the error is thrown by the await below
    // Another is in the cache, with an entry that does not expire; the other process, which has not
    // resolved it before, finds it there. No process has resolved `unresolved`.
    const cached = await cacheOne({ httpClient: one, redis, links: others, endMs })
    if (cached === undefined) return { ...(await polling), tiers: [], before: 0 }
    await redis.persist(keyOf(cached.code))
    const { before, after } = await polling
    const ofPopular = { machine: first, httpClient: one, link: popular }
    // The link may have been re-read just now: entries in memory are refreshed periodically.
    const tier = await tierOf(ofPopular)
    const inMemory = tier === 'memory' ? tier : await tierOf(ofPopular)
    const inCache = await tierOf({ machine: second, httpClient: other, link: cached })
    const inStore = await tierOf({ machine: second, httpClient: other, link: unresolved })
    for (const { code } of [popular, cached, unresolved]) await mustHaveRow(machines, code)
    return { before, after, tiers: [inMemory, inCache, inStore] }
  } finally {
    redis.disconnect()
    readers.close()
    await close()
  }
}

/**
 * Resolves links until one of them is in the cache: after a Redis timeout none is written.
 * Resolves to undefined if they expire meanwhile.
 */
async function cacheOne(given: {
  httpClient: HttpClient
  redis: ReturnType<typeof clientOf>
  links: readonly Expiring[]
  endMs: number
}): Promise<Expiring | undefined> {
  for (const link of given.links) {
    const { code, target } = link
    const response = await resolveCode(given.httpClient, code)
    if (Date.now() >= given.endMs) return undefined
    if (!isRedirectTo(response, target)) throw new Error(`/${code}: ${describeResponse(response)}`)
    const isCached = async () => (await given.redis.get(keyOf(code)))?.includes(target) === true
    const endMs = performance.now() + CACHED_MS_MAX
    while (performance.now() < endMs) {
      if (await isCached()) return link
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  throw new Error('none of the links was cached')
}

/** Opens the link store before the links are created, as the links would expire meanwhile. */
async function openLinks({ cassandra: cluster }: ManyMachines) {
  const config = parseConfig(cassandraSettings, environmentOf(cluster, KEYSPACE))
  const store = openCassandra({ config, metrics: createMetrics(), log: quiet })
  const links = createCassandraLinkStore(store)
  await store.ready
  return { links, close: () => store.close() }
}

/** Inserts links with the same expiry: more than needed, as some may not be cached. */
function insertLinks(links: Pick<LinkStore, 'insertIfAbsent'>, endMs: number): Promise<Expiring[]> {
  const insert = async (): Promise<Expiring> => {
    const link = sampleLink({ createdAtMs: Date.now(), expiresAtMs: endMs })
    const writerId = await links.insertIfAbsent(link)
    if (writerId !== link.writerId) throw new Error(`${link.code} is taken`)
    return { code: link.code, target: String(link.longUrl), endMs }
  }
  return Promise.all(Array.from({ length: LINKS }, insert))
}

/** Resolves a link without pause across its expiry: 302 before, 404 after. */
async function pollOverExpiry(httpClient: HttpClient, { code, target, endMs }: Expiring) {
  const sum = { before: 0, after: 0 }
  while (sum.after < 20) {
    const startMs = Date.now()
    const response = await httpClient.send({ path: `/${code}` })
    const isBefore = Date.now() < endMs
    const isAfter = startMs >= endMs
    if (isBefore && isRedirectTo(response, target)) sum.before++
    else if (isAfter && response.status === 404) sum.after++
    else if (isBefore || isAfter) {
      const at = `${String(startMs - endMs)} ms after its expiry`
      throw new Error(`/${code}, ${at}: ${describeResponse(response)}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return sum
}

/** Resolves an expired link; returns the tier that the result came from. */
async function tierOf(given: {
  machine: Machine
  httpClient: HttpClient
  link: Expiring
}): Promise<string> {
  const { machine, httpClient, link } = given
  if (Date.now() < link.endMs) throw new Error(`/${link.code} has not expired yet`)
  const tiers = ['memory', 'cache', 'store', 'replica']
  const hitsOf = (tier: string) =>
    machine.metric('curtail_link_lookups_total', `tier="${tier}"`, 'result="hit"')
  const before = await Promise.all(tiers.map(hitsOf))
  const response = await resolveCode(httpClient, link.code)
  if (response.status !== 404)
    throw new Error(`/${link.code} has expired: ${describeResponse(response)}`)
  const after = await Promise.all(tiers.map(hitsOf))
  return tiers.find((_, i) => after[i] !== before[i]) ?? 'none'
}

/** Throws unless a majority still has the row, with the TTL of its quarantine. */
async function mustHaveRow({ cassandra: cluster }: ManyMachines, code: string): Promise<void> {
  const client = new cassandra.Client({
    contactPoints: [...cluster.contactPoints],
    protocolOptions: { port: cluster.port },
    localDataCenter: cluster.localDc,
    keyspace: KEYSPACE,
    queryOptions: { prepare: true, consistency: cassandra.types.consistencies.localQuorum },
  })
  try {
    const cql = 'SELECT long_url, TTL(long_url) AS ttl FROM links WHERE short_code = ?'
    const [row] = (await client.execute(cql, [code])).rows
    if (Number(row?.['ttl']) < QUARANTINE_SECONDS_MIN || row?.['long_url'] == null) {
      throw new Error(`the row of /${code} is missing: ${JSON.stringify(row)}`)
    }
  } finally {
    await client.shutdown()
  }
}
