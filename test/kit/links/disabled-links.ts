// Rounds that disable one link while the cache fails: after the admin API has confirmed, the link
// stops redirecting on every process within the deadline, and does not redirect afterwards.
import { flush, stopRedisAtWrite } from './fresh-links.ts'
import type { HttpClient } from '../http/http-client.ts'
import {
  createWithRetries,
  resolveCode,
  expectRedirect,
  openHttpClients,
} from '../http/machine-clients.ts'
import type { Machine, ManyMachines } from '../processes/many-machines.ts'
import { waitFor } from '../wait-for.ts'

/** The bound of the contract. */
const DISABLED_MS_MAX = 5000
/** The link must stay disabled for this long. */
const STABLE_MS = 300
const CONFIRM_MS_MAX = 30_000

/** The fault of Redis. */
export type DisableFault =
  | 'none'
  | 'flushed'
  | 'stopped'
  | 'stopped between store and cache'
  | 'killed'
  | 'partitioned from a reader'
  | 'partitioned from the writer'

/** Runs a round; returns how many ms after the response every process had disabled the link. */
export async function disableRound(given: {
  machines: ManyMachines
  alias: string
  fault: DisableFault
}): Promise<number> {
  const { machines, alias, fault } = given
  const target = `https://example.com/disabled/${alias}`
  const readers = openHttpClients(machines.redirects)
  const createClients = openHttpClients(machines.creates)
  try {
    await createWithRetries(createClients.all, { key: `disabled-${alias}`, target, alias })
    for (const reader of readers.all) await expectRedirect(reader, alias, target)
    // In memory on every process: requested without pause, like a popular link.
    const polling = { isStopping: false }
    const popular = Promise.all(readers.all.map((reader) => pollLink(reader, alias, polling)))
    try {
      const confirmedMs = await disable(machines, alias, fault)
      const isDisabled = async () => {
        const responses = await Promise.all(readers.all.map((one) => resolveCode(one, alias)))
        return responses.every(({ status }) => status === 404)
      }
      await waitFor(`/${alias} to be disabled (Redis ${fault})`, isDisabled, DISABLED_MS_MAX)
      const disabledMs = performance.now() - confirmedMs
      const untilMs = performance.now() + STABLE_MS
      while (performance.now() < untilMs) {
        if (!(await isDisabled()))
          throw new Error(`/${alias} redirects after it was disabled (Redis ${fault})`)
      }
      return disabledMs
    } finally {
      polling.isStopping = true
      await popular
      await heal(machines)
    }
  } finally {
    readers.close()
    createClients.close()
  }
}

async function pollLink(
  reader: HttpClient,
  alias: string,
  polling: { isStopping: boolean },
): Promise<void> {
  while (!polling.isStopping) {
    const { status } = await resolveCode(reader, alias)
    if (status !== 302 && status !== 404) throw new Error(`/${alias}: ${String(status)}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Disables the link during the fault; returns the time of the confirmation. */
async function disable(
  machines: ManyMachines,
  alias: string,
  fault: DisableFault,
): Promise<number> {
  const { redis, creates, redirects } = machines
  const [first, second] = creates
  const [reader] = redirects
  if (first === undefined || second === undefined || reader === undefined) {
    throw new Error('too few processes')
  }
  switch (fault) {
    case 'none':
      return await disableUntilConfirmed(first, alias)
    case 'flushed': {
      const [confirmedMs] = await Promise.all([
        disableUntilConfirmed(first, alias),
        flush(machines),
      ])
      return confirmedMs
    }
    case 'stopped':
      redis.stop()
      await mustReject(first, alias)
      redis.resume()
      return await disableUntilConfirmed(first, alias)
    case 'stopped between store and cache':
      return await disableDuringStop(machines, first, alias)
    case 'killed':
      await redis.kill()
      await mustReject(first, alias)
      await redis.restart()
      return await disableUntilConfirmed(first, alias)
    case 'partitioned from a reader':
      await reader.redisProxy.stopListening()
      return await disableUntilConfirmed(first, alias)
    case 'partitioned from the writer':
      await first.redisProxy.stopListening()
      await mustReject(first, alias)
      return await disableUntilConfirmed(second, alias)
  }
}

const post = (machine: Machine, alias: string) =>
  machine.admin({ method: 'POST', path: `/links/${alias}/disable` })

/** Retries until confirmed, as the contract requires; returns the time of the confirmation. */
async function disableUntilConfirmed(machine: Machine, alias: string): Promise<number> {
  let confirmedMs = 0
  const isDone = async () => {
    const { status } = await post(machine, alias)
    confirmedMs = performance.now()
    if (status !== 200 && status !== 204 && status !== 503) {
      throw new Error(`disable of ${alias}: ${String(status)}`)
    }
    return status !== 503
  }
  await waitFor(`the disable of ${alias} to be confirmed`, isDone, CONFIRM_MS_MAX)
  return confirmedMs
}

/**
 * Stops Redis after the store has the change, until a first command has failed: the request still
 * gets 200, because the invalidation is retried for a second. Returns the time of the confirmation.
 */
async function disableDuringStop(
  machines: ManyMachines,
  writer: Machine,
  alias: string,
): Promise<number> {
  const failures = () => writer.metric('curtail_link_cache_failures_total')
  const before = await failures()
  const stopping = stopRedisAtWrite(machines)
  const disabling = post(writer, alias)
  try {
    await waitFor('a command that Redis does not reply to', async () => (await failures()) > before)
  } finally {
    machines.redis.resume()
    if (stopping.finish() === 0)
      throw new Error(`Redis was not stopped while ${alias} was disabled`)
  }
  const { status } = await disabling
  if (status === 200) return performance.now()
  throw new Error(`disable of ${alias}, sent once while Redis hung: ${String(status)}`)
}

/** Throws unless the change is rejected because the cache cannot confirm it. */
async function mustReject(machine: Machine, alias: string): Promise<void> {
  const { status } = await post(machine, alias)
  if (status !== 503) throw new Error(`disable of ${alias} without a cache: ${String(status)}`)
}

async function heal({ redis, creates, redirects }: ManyMachines): Promise<void> {
  redis.resume()
  for (const { redisProxy } of [...creates, ...redirects]) await redisProxy.heal()
}
