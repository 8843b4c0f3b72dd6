// A round of links that expire while their rows live on: followed until the very moment, and not
// found from then on, whether memory, the cache or the store is asked.
import cassandra from 'cassandra-driver'
import type { LinkStore } from '../../src/links/link-store.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { openCassandra } from '../../src/stores/cassandra/client.ts'
import { createCassandraLinkStore } from '../../src/stores/cassandra/link-store.ts'
import { cassandraSettings } from '../../src/stores/cassandra/settings.ts'
import { keyOf } from '../../src/stores/redis/link-cache-entry.ts'
import { environmentOf, quiet } from '../contract/open-cassandra.ts'
import { sampleLink } from '../contract/sample-link.ts'
import { clientOf } from '../parts/redis.ts'
import type { Asker } from './asker.ts'
import { follow, leadsTo, openAskers, renderAnswer } from './machine-clients.ts'
import type { Machine, ManyMachines } from './many-machines.ts'

const KEYSPACE = 'curtail'
/** Less than a process remembers a link, so that it has it in memory at its end. */
const LIFE_MS = 3500
const LINKS = 6
const ROUNDS_MAX = 3
/** How soon a link that was followed is in the cache, if at all. */
const CACHED_MS_MAX = 500
const QUARANTINE_SECONDS_MIN = 30 * 86_400

interface Expiring {
  readonly code: string
  readonly target: string
  readonly endMs: number
}

/** What a round gave: answers before and after the end, and which tiers said that it is over. */
export interface Expired {
  readonly before: number
  readonly after: number
  readonly tiers: readonly string[]
}

/**
 * Runs one round of three links that end at the same time, and another where a tier was too late to
 * be the one that told. Throws what it found.
 */
export async function expireRound(machines: ManyMachines): Promise<Expired> {
  let round = await runRound(machines)
  for (let rounds = 1; rounds < ROUNDS_MAX && wasLate(round); rounds++) {
    round = await runRound(machines)
  }
  return round
}

/** Whether the cache or the store was not waited for, as is right: a tier behind it told then. */
function wasLate({ tiers: [, inCache = '', inStore = ''] }: Expired): boolean {
  return ['store', 'replica'].includes(inCache) || inStore === 'replica'
}

async function runRound(machines: ManyMachines): Promise<Expired> {
  const [first, second] = machines.redirects
  const readers = openAskers(machines.redirects)
  const [one, other] = readers.all
  if (first === undefined || second === undefined) throw new Error('there are too few processes')
  if (one === undefined || other === undefined) throw new Error('there is nobody to ask')
  const { links: store, close } = await openLinks(machines)
  const redis = clientOf(machines.redis.port)
  try {
    const endMs = Date.now() + LIFE_MS
    const [popular, unseen, ...others] = await insertLinks(store, endMs)
    if (popular === undefined || unseen === undefined) throw new Error('there are too few links')
    // The first is asked for on and on by one process, which so has it in memory at its end.
    const following = followOver(one, popular)
    following.catch(() => undefined) // thrown where it is awaited
    // Another is known to the cache, whose entry is made to outlive it; the other process, which
    // has not asked for it before, meets it there. `unseen` was never asked for.
    const cached = await cacheOne({ asker: one, redis, links: others })
    await redis.persist(keyOf(cached.code))
    const { before, after } = await following
    const ofPopular = { machine: first, asker: one, link: popular }
    // It may have been read again just now, as what is remembered is from time to time.
    const told = await toldBy(ofPopular)
    const inMemory = told === 'memory' ? told : await toldBy(ofPopular)
    const inCache = await toldBy({ machine: second, asker: other, link: cached })
    const inStore = await toldBy({ machine: second, asker: other, link: unseen })
    for (const { code } of [popular, cached, unseen]) await mustHaveRow(machines, code)
    return { before, after, tiers: [inMemory, inCache, inStore] }
  } finally {
    redis.disconnect()
    readers.close()
    await close()
  }
}

/** Follows links until one of them is in the cache: who waits for Redis in vain stores nothing. */
async function cacheOne(given: {
  asker: Asker
  redis: ReturnType<typeof clientOf>
  links: readonly Expiring[]
}): Promise<Expiring> {
  for (const link of given.links) {
    const { code, target } = link
    const answer = await follow(given.asker, code)
    if (!leadsTo(answer, target)) throw new Error(`/${code}: ${renderAnswer(answer)}`)
    const isCached = async () => (await given.redis.get(keyOf(code)))?.includes(target) === true
    const endMs = performance.now() + CACHED_MS_MAX
    while (performance.now() < endMs) {
      if (await isCached()) return link
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  throw new Error('none of the links came into the cache')
}

/** The store of links, ready: to open it takes its time, of which a link's life has none. */
async function openLinks({ cassandra: cluster }: ManyMachines) {
  const config = parseConfig(cassandraSettings, environmentOf(cluster, KEYSPACE))
  const store = openCassandra({ config, metrics: createMetrics(), log: quiet })
  const links = createCassandraLinkStore(store)
  await store.ready
  return { links, close: () => store.close() }
}

/** Links of which each ends at the same time: more than are needed, for some may not be cached. */
function insertLinks(links: Pick<LinkStore, 'insertIfAbsent'>, endMs: number): Promise<Expiring[]> {
  const insert = async (): Promise<Expiring> => {
    const link = sampleLink({ createdAtMs: Date.now(), expiresAtMs: endMs })
    const writerId = await links.insertIfAbsent(link)
    if (writerId !== link.writerId) throw new Error(`${link.code} is taken`)
    return { code: link.code, target: String(link.longUrl), endMs }
  }
  return Promise.all(Array.from({ length: LINKS }, insert))
}

/** Asks without pause over the end of a link: 302 until then, 404 from then on. */
async function followOver(asker: Asker, { code, target, endMs }: Expiring) {
  const sum = { before: 0, after: 0 }
  while (sum.after < 20) {
    const begunMs = Date.now()
    const answer = await asker.ask({ path: `/${code}` })
    const isBefore = Date.now() < endMs
    const isAfter = begunMs >= endMs
    if (isBefore && leadsTo(answer, target)) sum.before++
    else if (isAfter && answer.status === 404) sum.after++
    else if (isBefore || isAfter) {
      const at = `${String(begunMs - endMs)} ms after its end`
      throw new Error(`/${code}, ${at}: ${renderAnswer(answer)}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return sum
}

/** Asks for a link that has ended; which tier told the process of it. */
async function toldBy(given: { machine: Machine; asker: Asker; link: Expiring }): Promise<string> {
  const { machine, asker, link } = given
  if (Date.now() < link.endMs) throw new Error(`/${link.code} has not ended yet`)
  const tiers = ['memory', 'cache', 'store', 'replica']
  const hitsOf = (tier: string) =>
    machine.metric('curtail_link_lookups_total', `tier="${tier}"`, 'result="hit"')
  const before = await Promise.all(tiers.map(hitsOf))
  const answer = await follow(asker, link.code)
  if (answer.status !== 404) throw new Error(`/${link.code} has ended: ${renderAnswer(answer)}`)
  const after = await Promise.all(tiers.map(hitsOf))
  return tiers.find((_, i) => after[i] !== before[i]) ?? 'none'
}

/** Throws unless every replica's majority still holds the row, and for its quarantine. */
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
      throw new Error(`the row of /${code} is not there: ${JSON.stringify(row)}`)
    }
  } finally {
    await client.shutdown()
  }
}
