// Rounds of one link that is disabled, through a cache that fails: once the admin API has said yes,
// it stops redirecting on every process in time, and does not come back.
import { flush, stopAtWrite } from './fresh-links.ts'
import type { Asker } from './asker.ts'
import { createUntilTold, follow, mustLeadTo, openAskers } from './machine-clients.ts'
import type { Machine, ManyMachines } from './many-machines.ts'
import { waitFor } from './wait-for.ts'

/** What the contract allows. */
const GONE_MS_MAX = 5000
/** How long it must stay gone to be believed. */
const STAYS_MS = 300
const CONFIRM_MS_MAX = 30_000

/** What is wrong with Redis. */
export type DisableFault =
  | 'none'
  | 'flushed'
  | 'stopped'
  | 'stopped between store and cache'
  | 'killed'
  | 'cut off from a reader'
  | 'cut off from the writer'

/** Runs one; how long after the answer the link was gone everywhere, ms. Throws what it found. */
export async function disableRound(given: {
  machines: ManyMachines
  alias: string
  fault: DisableFault
}): Promise<number> {
  const { machines, alias, fault } = given
  const target = `https://example.com/disabled/${alias}`
  const readers = openAskers(machines.redirects)
  const creators = openAskers(machines.creates)
  try {
    await createUntilTold(creators.all, { key: `disabled-${alias}`, target, alias })
    for (const reader of readers.all) await mustLeadTo(reader, alias, target)
    // In memory everywhere: asked for without pause, as something popular would be.
    const asking = { isEnding: false }
    const popular = Promise.all(readers.all.map((reader) => askOn(reader, alias, asking)))
    try {
      const answeredMs = await disable(machines, alias, fault)
      const isGone = async () => {
        const answers = await Promise.all(readers.all.map((one) => follow(one, alias)))
        return answers.every(({ status }) => status === 404)
      }
      await waitFor(`/${alias} to be gone (Redis ${fault})`, isGone, GONE_MS_MAX)
      const goneMs = performance.now() - answeredMs
      const untilMs = performance.now() + STAYS_MS
      while (performance.now() < untilMs) {
        if (!(await isGone())) throw new Error(`/${alias} came back (Redis ${fault})`)
      }
      return goneMs
    } finally {
      asking.isEnding = true
      await popular
      await heal(machines)
    }
  } finally {
    readers.close()
    creators.close()
  }
}

async function askOn(reader: Asker, alias: string, asking: { isEnding: boolean }): Promise<void> {
  while (!asking.isEnding) {
    const { status } = await follow(reader, alias)
    if (status !== 302 && status !== 404) throw new Error(`/${alias}: ${String(status)}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Disables it under the fault; gives when the answer came that it is done. */
async function disable(
  machines: ManyMachines,
  alias: string,
  fault: DisableFault,
): Promise<number> {
  const { redis, creates, redirects } = machines
  const [first, second] = creates
  const [reader] = redirects
  if (first === undefined || second === undefined || reader === undefined) {
    throw new Error('there are too few processes')
  }
  switch (fault) {
    case 'none':
      return await disableUntilTold(first, alias)
    case 'flushed': {
      const [answeredMs] = await Promise.all([disableUntilTold(first, alias), flush(machines)])
      return answeredMs
    }
    case 'stopped':
      redis.stop()
      await mustRefuse(first, alias)
      redis.resume()
      return await disableUntilTold(first, alias)
    case 'stopped between store and cache':
      return await disableOverStop(machines, first, alias)
    case 'killed':
      await redis.kill()
      await mustRefuse(first, alias)
      await redis.restart()
      return await disableUntilTold(first, alias)
    case 'cut off from a reader':
      await reader.redisProxy.refuse()
      return await disableUntilTold(first, alias)
    case 'cut off from the writer':
      await first.redisProxy.refuse()
      await mustRefuse(first, alias)
      return await disableUntilTold(second, alias)
  }
}

const post = (machine: Machine, alias: string) =>
  machine.admin({ method: 'POST', path: `/links/${alias}/disable` })

/** Repeats it until it is done, as the contract asks of operators; gives when that was told. */
async function disableUntilTold(machine: Machine, alias: string): Promise<number> {
  let answeredMs = 0
  const isDone = async () => {
    const { status } = await post(machine, alias)
    answeredMs = performance.now()
    if (status !== 200 && status !== 204 && status !== 503) {
      throw new Error(`disable of ${alias}: ${String(status)}`)
    }
    return status !== 503
  }
  await waitFor(`the disable of ${alias} to be confirmed`, isDone, CONFIRM_MS_MAX)
  return answeredMs
}

/**
 * Redis hangs once the store has the change, until a first command to it has failed: one request is
 * answered 200 all the same, for it tells the cache for a second; gives when that was told.
 */
async function disableOverStop(
  machines: ManyMachines,
  writer: Machine,
  alias: string,
): Promise<number> {
  const failures = () => writer.metric('curtail_link_cache_failures_total')
  const before = await failures()
  const stopping = stopAtWrite(machines)
  const disabling = post(writer, alias)
  try {
    await waitFor('a command that Redis does not answer', async () => (await failures()) > before)
  } finally {
    machines.redis.resume()
    if (stopping.end() === 0) throw new Error(`Redis was not stopped while ${alias} was disabled`)
  }
  const { status } = await disabling
  if (status === 200) return performance.now()
  throw new Error(`disable of ${alias}, told once over a Redis that hung: ${String(status)}`)
}

/** A change that the cache has not confirmed is not told to be done. */
async function mustRefuse(machine: Machine, alias: string): Promise<void> {
  const { status } = await post(machine, alias)
  if (status !== 503) throw new Error(`disable of ${alias} without a cache: ${String(status)}`)
}

async function heal({ redis, creates, redirects }: ManyMachines): Promise<void> {
  redis.resume()
  for (const { redisProxy } of [...creates, ...redirects]) await redisProxy.heal()
}
