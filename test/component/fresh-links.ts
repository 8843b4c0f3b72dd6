// Rounds of one link that is made while others already ask for it: whoever asks after the 201 is
// redirected, on every process; where the cache was away meanwhile, soon after it is back.
import { clientOf } from '../parts/redis.ts'
import {
  type Asker,
  createUntilTold,
  leadsTo,
  mustLeadTo,
  openAskers,
  renderAnswer,
} from './machine-clients.ts'
import type { ManyMachines } from './many-machines.ts'
import { waitFor } from './wait-for.ts'

const READERS = 20
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
  const race: Race = { alias, target, isTold: false, answers: 0 }
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
}

/** Asks until a question that was put after the 201 has been answered. */
async function readUntilTold(reader: Asker, race: Race, started: { count: number }): Promise<void> {
  for (let i = 0; ; i++) {
    const wasTold = race.isTold
    const answer = await reader.ask({ path: `/${race.alias}` })
    race.answers++
    if (i === 0) started.count++
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
export type FreshFault = 'stopped' | 'killed' | 'cut off from the writer'

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
    for (const reader of readers.all) {
      const answer = await reader.ask({ path: `/${alias}` })
      if (answer.status !== 404) throw new Error(`/${alias} is there: ${renderAnswer(answer)}`)
    }
    const { begin, end } = faultOf(machines, fault)
    await begin()
    try {
      await createUntilTold(creators.all, { key: `unlucky-${alias}`, target, alias })
      // Nobody can ask the memory of a Redis that is away.
      if (fault !== 'cut off from the writer') {
        for (const reader of readers.all) await mustLeadTo(reader, alias, target)
      }
    } finally {
      await end()
    }
    for (const reader of readers.all) {
      const isThere = async () => leadsTo(await reader.ask({ path: `/${alias}` }), target)
      await waitFor(`/${alias} on every process (Redis ${fault})`, isThere, SOON_MS_MAX)
    }
  } finally {
    readers.close()
    creators.close()
  }
}

function faultOf(machines: ManyMachines, fault: FreshFault) {
  const { redis, creates } = machines
  const proxy = creates[0]?.redisProxy
  switch (fault) {
    case 'stopped':
      return {
        begin: () => {
          redis.stop()
          return Promise.resolve()
        },
        end: () => {
          redis.resume()
          return Promise.resolve()
        },
      }
    case 'killed':
      return { begin: () => redis.kill(), end: () => redis.restart() }
    case 'cut off from the writer':
      return {
        begin: () => {
          proxy?.blackHole()
          return Promise.resolve()
        },
        end: () => proxy?.heal() ?? Promise.resolve(),
      }
  }
}
