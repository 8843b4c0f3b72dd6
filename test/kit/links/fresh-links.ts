// Rounds that create one link while clients already request its code: after the 201 every process
// redirects; if the cache was unavailable during the create, soon after it has recovered.
import { encodeEntry, keyOf } from '../../../src/stores/redis/link-cache-entry.ts'
import { clientOf } from '../../dependencies/redis.ts'
import { createLinkRequest } from '../http/client.ts'
import type { HttpClient } from '../http/http-client.ts'
import {
  createWithRetries,
  resolveCode,
  isRedirectTo,
  expectRedirect,
  openHttpClients,
  describeResponse,
} from '../http/machine-clients.ts'
import type { Machine, ManyMachines } from '../processes/many-machines.ts'
import { waitFor } from '../wait-for.ts'

const READERS = 20
/** How many lookups of a round may time out in the store. */
const TIMEOUTS_MAX = 40
/** How soon every process redirects once the cache has recovered that was down at the create. */
const RECOVERY_MS_MAX = 5000

/** Runs a round; returns the number of responses to readers. Throws if a response is wrong. */
export async function freshRound(given: {
  machines: ManyMachines
  alias: string
  /** Index of the process that creates the link. */
  writer: number
  /** Whether Redis is flushed during the round. */
  isFlushed: boolean
}): Promise<number> {
  const { machines, alias, writer, isFlushed } = given
  const target = `https://example.com/fresh/${alias}`
  const readers = openHttpClients(machines.redirects)
  const createClients = openHttpClients(machines.creates)
  const race: Race = { alias, target, isCreated: false, responses: 0, timeouts: 0 }
  const started = { count: 0 }
  try {
    const racing = Array.from({ length: READERS }, (_, i) => {
      const reader = readers.all[i % readers.all.length]
      return reader === undefined ? Promise.resolve() : readUntilCreated(reader, race, started)
    })
    const all = Promise.all(racing)
    await Promise.race([waitFor('every reader', () => started.count === READERS), all])
    const flushing = isFlushed ? flush(machines) : Promise.resolve()
    const createClient = createClients.all[writer]
    if (createClient === undefined) throw new Error('no such process')
    await createWithRetries([createClient], { key: `fresh-${alias}`, target, alias })
    race.isCreated = true
    for (const reader of readers.all) await expectRedirect(reader, alias, target)
    await Promise.all([all, flushing])
    return race.responses
  } finally {
    race.isCreated = true
    readers.close()
    createClients.close()
  }
}

interface Race {
  readonly alias: string
  readonly target: string
  isCreated: boolean
  responses: number
  timeouts: number
}

/** Sends lookups until one that was sent after the 201 has its response. */
async function readUntilCreated(
  reader: HttpClient,
  race: Race,
  started: { count: number },
): Promise<void> {
  for (let i = 0; ; i++) {
    const wasCreated = race.isCreated
    const response = await reader.send({ path: `/${race.alias}` })
    race.responses++
    if (i === 0) started.count++
    // On a busy machine a lookup may time out: 503 proves nothing, and the lookup is retried.
    if (response.status === 503 && ++race.timeouts < TIMEOUTS_MAX) continue
    const isFound = isRedirectTo(response, race.target)
    if (!isFound && (wasCreated || response.status !== 404)) {
      throw new Error(`fresh /${race.alias}: ${describeResponse(response)}`)
    }
    if (wasCreated) return
  }
}

/** Empties Redis. */
export async function flush({ redis }: ManyMachines): Promise<void> {
  const client = clientOf(redis.port)
  await client.flushall()
  client.disconnect()
}

/** The fault of Redis during a create. */
export type FreshFault =
  | 'stopped'
  | 'stopped between store and cache'
  | 'killed'
  | 'partitioned from the writer'
  | 'partitioned from a reader'

/** Creates a link, whose code has a negative cache entry, during a fault of Redis. */
export async function createDuringFault(given: {
  machines: ManyMachines
  alias: string
  fault: FreshFault
}): Promise<void> {
  const { machines, alias, fault } = given
  const target = `https://example.com/unlucky/${alias}`
  const readers = openHttpClients(machines.redirects)
  const [writer] = machines.creates
  const createClients = openHttpClients(machines.creates.slice(0, 1))
  if (writer === undefined) throw new Error('no create process')
  try {
    await untilCacheIsUsed(machines) // by the writer too, after an earlier fault
    await waitFor('the negative cache entry', async () => {
      // Retried, as a lookup that timed out does not write the cache entry.
      for (const reader of readers.all) await mustBeAbsent(reader, alias)
      return isCachedAsAbsent(machines, alias)
    })
    const { start, stop } = faultOf(machines, fault)
    await start()
    try {
      if (fault === 'partitioned from a reader') {
        for (const reader of readers.all) await mustBeAbsent(reader, alias)
      }
      if (fault === 'stopped between store and cache') {
        await createDuringStop(machines, { httpClient: createClients.all[0], target, alias })
      } else {
        await createWithRetries(createClients.all, { key: `unlucky-${alias}`, target, alias })
      }
      // While Redis is down these lookups read the store. Without them no process would have the
      // target in memory; with them a process does not read Redis after its recovery.
      if (fault !== 'partitioned from the writer' && fault !== 'stopped between store and cache') {
        for (const reader of readers.all) await expectRedirect(reader, alias, target)
      }
    } finally {
      await stop()
    }
    await untilCacheIsUsed(machines)
    for (const reader of readers.all) {
      const isFound = async () => isRedirectTo(await reader.send({ path: `/${alias}` }), target)
      await waitFor(`/${alias} on every process (Redis ${fault})`, isFound, RECOVERY_MS_MAX)
    }
  } finally {
    readers.close()
    createClients.close()
  }
}

/** Waits until every process uses the cache: only then would a wrong entry have an effect. */
async function untilCacheIsUsed({ redis, creates, redirects }: ManyMachines): Promise<void> {
  await waitFor('every process to use the cache', async () => {
    const client = clientOf(redis.port)
    await client.ping()
    client.disconnect()
    const machines = [...creates, ...redirects]
    const unavailable = machines.map((one) => one.metric('curtail_link_cache_unavailable'))
    return (await Promise.all(unavailable)).every((value) => value === 0)
  })
}

async function isCachedAsAbsent({ redis }: ManyMachines, alias: string): Promise<boolean> {
  const client = clientOf(redis.port)
  try {
    return (await client.get(keyOf(alias))) === encodeEntry(alias, undefined)
  } finally {
    client.disconnect()
  }
}

async function mustBeAbsent(reader: HttpClient, alias: string): Promise<void> {
  const response = await resolveCode(reader, alias)
  if (response.status !== 404)
    throw new Error(`/${alias} is not absent: ${describeResponse(response)}`)
}

/** Sends one create; Redis stops after the store has the link, and the response must be 201. */
async function createDuringStop(
  machines: ManyMachines,
  request: { httpClient: HttpClient | undefined; target: string; alias: string },
): Promise<void> {
  const { httpClient, target, alias } = request
  if (httpClient === undefined) throw new Error('no client')
  const stopping = stopRedisAtWrite(machines)
  const response = await httpClient.send(
    createLinkRequest({ long_url: target, custom_alias: alias }),
  )
  if (stopping.finish() === 0) throw new Error(`Redis was not stopped while ${alias} was created`)
  if (response.status !== 201)
    throw new Error(`/${alias}, created by one request: ${describeResponse(response)}`)
}

/**
 * Stops Redis (SIGSTOP) when Cassandra confirms a conditional write, before the result reaches the
 * process. `finish` returns the number of such results.
 */
export function stopRedisAtWrite({ cassandra, redis }: ManyMachines): {
  readonly finish: () => number
} {
  let results = 0
  const matches = (message: Buffer) => {
    if (message.includes('[applied]') && ++results === 1) redis.stop()
    return false
  }
  const proxies = cassandra.nodes.map((_, at) => cassandra.proxy(at))
  for (const proxy of proxies) proxy.dropResponses({ matches })
  return {
    finish() {
      for (const proxy of proxies) proxy.dropResponses({ count: 0 })
      return results
    },
  }
}

function faultOf(machines: ManyMachines, fault: FreshFault) {
  const { redis, creates, redirects } = machines
  const cutFrom = (machine: Machine | undefined) => ({
    start: () => {
      machine?.redisProxy.blackHole()
      return Promise.resolve()
    },
    stop: () => machine?.redisProxy.heal() ?? Promise.resolve(),
  })
  const resume = () => {
    redis.resume()
    return Promise.resolve()
  }
  switch (fault) {
    case 'stopped':
      return {
        start: () => {
          redis.stop()
          return Promise.resolve()
        },
        stop: resume,
      }
    case 'stopped between store and cache':
      return { start: () => Promise.resolve(), stop: resume }
    case 'killed':
      return { start: () => redis.kill(), stop: () => redis.restart() }
    case 'partitioned from the writer':
      return cutFrom(creates[0])
    case 'partitioned from a reader':
      return cutFrom(redirects[0])
  }
}
