// Rounds of one link that is made while others already ask for it: whoever asks after the 201 is
// redirected, on every process; where the cache was away meanwhile, soon after it is back.
import { encodeEntry, keyOf } from '../../src/stores/redis/link-cache-entry.ts'
import { clientOf } from '../parts/redis.ts'
import { createAsk } from './client.ts'
import type { Asker } from './asker.ts'
import {
  createUntilTold,
  follow,
  leadsTo,
  mustLeadTo,
  openAskers,
  renderAnswer,
} from './machine-clients.ts'
import type { Machine, ManyMachines } from './many-machines.ts'
import { waitFor } from './wait-for.ts'

const READERS = 20
/** Of a round's questions so many may find the store too slow. */
const SILENCES_MAX = 40
/** How soon a link is followed everywhere once the cache is back that was away at its making. */
const SOON_MS_MAX = 5000

/** Runs one; how many answers the readers got. Throws what it found. */
export async function freshRound(given: {
  machines: ManyMachines
  alias: string
  /** Which process makes the link. */
  writer: number
  /** Whether Redis is emptied meanwhile. */
  isFlushed: boolean
}): Promise<number> {
  const { machines, alias, writer, isFlushed } = given
  const target = `https://example.com/fresh/${alias}`
  const readers = openAskers(machines.redirects)
  const creators = openAskers(machines.creates)
  const race: Race = { alias, target, isTold: false, answers: 0, silences: 0 }
  const started = { count: 0 }
  try {
    const racing = Array.from({ length: READERS }, (_, i) => {
      const reader = readers.all[i % readers.all.length]
      return reader === undefined ? Promise.resolve() : readUntilTold(reader, race, started)
    })
    const all = Promise.all(racing)
    await Promise.race([waitFor('every reader', () => started.count === READERS), all])
    const flushing = isFlushed ? flush(machines) : Promise.resolve()
    const creator = creators.all[writer]
    if (creator === undefined) throw new Error('there is no such process')
    await createUntilTold([creator], { key: `fresh-${alias}`, target, alias })
    race.isTold = true
    for (const reader of readers.all) await mustLeadTo(reader, alias, target)
    await Promise.all([all, flushing])
    return race.answers
  } finally {
    race.isTold = true
    readers.close()
    creators.close()
  }
}

interface Race {
  readonly alias: string
  readonly target: string
  isTold: boolean
  answers: number
  silences: number
}

/** Asks until a question that was put after the 201 has been answered. */
async function readUntilTold(reader: Asker, race: Race, started: { count: number }): Promise<void> {
  for (let i = 0; ; i++) {
    const wasTold = race.isTold
    const answer = await reader.ask({ path: `/${race.alias}` })
    race.answers++
    if (i === 0) started.count++
    // On a busy machine a look-up may run out of its deadline: it says nothing, and is put again.
    if (answer.status === 503 && ++race.silences < SILENCES_MAX) continue
    const isThere = leadsTo(answer, race.target)
    if (!isThere && (wasTold || answer.status !== 404)) {
      throw new Error(`fresh /${race.alias}: ${renderAnswer(answer)}`)
    }
    if (wasTold) return
  }
}

/** Empties Redis. */
export async function flush({ redis }: ManyMachines): Promise<void> {
  const client = clientOf(redis.port)
  await client.flushall()
  client.disconnect()
}

/** What is wrong with Redis while a link is made. */
export type FreshFault =
  | 'stopped'
  | 'stopped between store and cache'
  | 'killed'
  | 'cut off from the writer'
  | 'cut off from a reader'

/** Makes a link, whose code was asked for in vain before, while Redis is away. */
export async function unluckyCreate(given: {
  machines: ManyMachines
  alias: string
  fault: FreshFault
}): Promise<void> {
  const { machines, alias, fault } = given
  const target = `https://example.com/unlucky/${alias}`
  const readers = openAskers(machines.redirects)
  const [writer] = machines.creates
  const creators = openAskers(machines.creates.slice(0, 1))
  if (writer === undefined) throw new Error('there is nobody who creates')
  try {
    await waitFor('the cache to know that it is absent', async () => {
      // Again, as the cache does not learn it from an answer that came too late.
      for (const reader of readers.all) await mustBeAbsent(reader, alias)
      return isCachedAsAbsent(machines, alias)
    })
    const { begin, end } = faultOf(machines, fault)
    await begin()
    try {
      if (fault === 'cut off from a reader') {
        for (const reader of readers.all) await mustBeAbsent(reader, alias)
      }
      if (fault === 'stopped between store and cache') {
        await createOverStop(machines, { asker: creators.all[0], target, alias })
      } else {
        await createUntilTold(creators.all, { key: `unlucky-${alias}`, target, alias })
      }
      // Nobody can ask the memory of a Redis that is away; but who was told the target by the store
      // remembers it, and would not see what Redis says when it is back.
      if (fault !== 'cut off from the writer' && fault !== 'stopped between store and cache') {
        for (const reader of readers.all) await mustLeadTo(reader, alias, target)
      }
    } finally {
      await end()
    }
    await waitFor('the cache to be asked again', () => isCacheUsed(machines))
    for (const reader of readers.all) {
      const isThere = async () => leadsTo(await reader.ask({ path: `/${alias}` }), target)
      await waitFor(`/${alias} on every process (Redis ${fault})`, isThere, SOON_MS_MAX)
    }
  } finally {
    readers.close()
    creators.close()
  }
}

/** While a process leaves the cache alone, or it is slow, nobody meets what is wrong in it. */
async function isCacheUsed({ redis, redirects }: ManyMachines): Promise<boolean> {
  const client = clientOf(redis.port)
  await client.ping()
  client.disconnect()
  const away = redirects.map((one) => one.metric('curtail_link_cache_unavailable'))
  return (await Promise.all(away)).every((isAway) => isAway === 0)
}

async function isCachedAsAbsent({ redis }: ManyMachines, alias: string): Promise<boolean> {
  const client = clientOf(redis.port)
  try {
    return (await client.get(keyOf(alias))) === encodeEntry(alias, undefined)
  } finally {
    client.disconnect()
  }
}

async function mustBeAbsent(reader: Asker, alias: string): Promise<void> {
  const answer = await follow(reader, alias)
  if (answer.status !== 404) throw new Error(`/${alias} is there: ${renderAnswer(answer)}`)
}

/** One request, which finds Redis stopped once the store has its link: it is answered 201. */
async function createOverStop(
  machines: ManyMachines,
  wish: { asker: Asker | undefined; target: string; alias: string },
): Promise<void> {
  const { asker, target, alias } = wish
  if (asker === undefined) throw new Error('there is nobody to ask')
  const stopping = stopAtWrite(machines)
  const answer = await asker.ask(createAsk({ long_url: target, custom_alias: alias }))
  if (stopping.end() === 0) throw new Error(`Redis was not stopped while ${alias} was made`)
  if (answer.status !== 201) throw new Error(`/${alias}, made once: ${renderAnswer(answer)}`)
}

/**
 * Stops Redis (SIGSTOP) the moment that Cassandra says it has done a conditional write, before the
 * process which asked is told. `end` gives how many such answers there were.
 */
export function stopAtWrite({ cassandra, redis }: ManyMachines): { readonly end: () => number } {
  let seen = 0
  const isSuch = (message: Buffer) => {
    if (message.includes('[applied]') && ++seen === 1) redis.stop()
    return false
  }
  const proxies = cassandra.nodes.map((_, at) => cassandra.proxy(at))
  for (const proxy of proxies) proxy.swallow({ isSuch })
  return {
    end() {
      for (const proxy of proxies) proxy.swallow({ answers: 0 })
      return seen
    },
  }
}

function faultOf(machines: ManyMachines, fault: FreshFault) {
  const { redis, creates, redirects } = machines
  const cutFrom = (machine: Machine | undefined) => ({
    begin: () => {
      machine?.redisProxy.blackHole()
      return Promise.resolve()
    },
    end: () => machine?.redisProxy.heal() ?? Promise.resolve(),
  })
  const resume = () => {
    redis.resume()
    return Promise.resolve()
  }
  switch (fault) {
    case 'stopped':
      return {
        begin: () => {
          redis.stop()
          return Promise.resolve()
        },
        end: resume,
      }
    case 'stopped between store and cache':
      return { begin: () => Promise.resolve(), end: resume }
    case 'killed':
      return { begin: () => redis.kill(), end: () => redis.restart() }
    case 'cut off from the writer':
      return cutFrom(creates[0])
    case 'cut off from a reader':
      return cutFrom(redirects[0])
  }
}
