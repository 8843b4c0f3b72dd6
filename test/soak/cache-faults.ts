// Redis is stopped, killed, flushed or partitioned from one process: redirects stay correct, a new
// link redirects immediately although its code was a miss just before, a disabled link stops.
import { freshRound, type FreshFault, createDuringFault } from '../kit/links/fresh-links.ts'
import { disableRound, type DisableFault } from '../kit/links/disabled-links.ts'
import type { HttpClient } from '../kit/http/http-client.ts'
import {
  expectRedirectWithoutRetry,
  openHttpClients,
  createWithRetries,
} from '../kit/http/machine-clients.ts'
import { type ManyMachines, startManyMachines } from '../kit/processes/many-machines.ts'
import { createRandom } from '../kit/random.ts'

const FULL_FRESH_ROUNDS = 1000
const FULL_FAULT_ROUNDS = 10

/** A fault of Redis while a link is created or disabled. */
export type CacheFault =
  | { readonly of: 'create'; readonly fault: FreshFault }
  | { readonly of: 'disable'; readonly fault: DisableFault }

/** Every fault once. */
export const cacheFaults: readonly CacheFault[] = [
  { of: 'create', fault: 'stopped' },
  { of: 'create', fault: 'killed' },
  { of: 'create', fault: 'stopped between store and cache' },
  { of: 'create', fault: 'partitioned from the writer' },
  { of: 'create', fault: 'partitioned from a reader' },
  { of: 'disable', fault: 'none' },
  { of: 'disable', fault: 'flushed' },
  { of: 'disable', fault: 'stopped' },
  { of: 'disable', fault: 'stopped between store and cache' },
  { of: 'disable', fault: 'killed' },
  { of: 'disable', fault: 'partitioned from a reader' },
  { of: 'disable', fault: 'partitioned from the writer' },
]

/** The result of a run. */
export interface CacheFaults {
  readonly freshRounds: number
  /** Responses to readers before and during the creation of the link. */
  readonly raced: number
  readonly flushes: number
  readonly createFaults: number
  readonly disables: number
  /** The longest time from the response to a disable until no process redirects. */
  readonly disabledMsMax: number
  /** Redirects of a link that no request changed, during the whole run. */
  readonly steady: number
}

/** Runs the rounds and the faults. Throws on the first violation. */
export async function faultCache(given: {
  machines: ManyMachines
  freshRounds: number
  /** Faults of Redis, one after the other. */
  faults: readonly CacheFault[]
  seed: number
}): Promise<CacheFaults> {
  const { machines, freshRounds, faults } = given
  const random = createRandom(given.seed)
  const name = () =>
    random
      .int(36 ** 6)
      .toString(36)
      .padStart(6, '0')
  const createClients = openHttpClients(machines.creates)
  const readers = openHttpClients(machines.redirects)
  const sum = { raced: 0, flushes: 0, createFaults: 0, disables: 0, disabledMsMax: 0 }
  const steady = watchSteady(readers.all, await createSteadyLink(createClients.all, name()))
  try {
    for (let round = 0; round < freshRounds && !steady.hasFailed(); round++) {
      const isFlushed = random.chance(0.1)
      const writer = round % machines.creates.length
      sum.raced += await freshRound({ machines, alias: `f-${name()}`, writer, isFlushed })
      if (isFlushed) sum.flushes++
    }
    for (const fault of faults) {
      if (steady.hasFailed()) break
      if (fault.of === 'create') {
        await createDuringFault({ machines, alias: `c-${name()}`, fault: fault.fault })
        sum.createFaults++
      } else {
        const disabledMs = await disableRound({
          machines,
          alias: `d-${name()}`,
          fault: fault.fault,
        })
        sum.disabledMsMax = Math.max(sum.disabledMsMax, Math.round(disabledMs))
        sum.disables++
      }
    }
    return { freshRounds, ...sum, steady: await steady.stop() }
  } finally {
    await steady.stop().catch(() => undefined) // thrown above, unless an earlier error is
    createClients.close()
    readers.close()
  }
}

interface SteadyLink {
  readonly code: string
  readonly target: string
}

async function createSteadyLink(
  createClients: readonly HttpClient[],
  alias: string,
): Promise<SteadyLink> {
  const target = `https://example.com/steady/${alias}`
  await createWithRetries(createClients, { key: `steady-${alias}`, target, alias: `s-${alias}` })
  return { code: `s-${alias}`, target }
}

/** Requests one link continuously from every process until it is stopped. */
function watchSteady(readers: readonly HttpClient[], { code, target }: SteadyLink) {
  let isStopping = false
  let count = 0
  let failure: unknown
  const poll = async (reader: HttpClient) => {
    while (!isStopping && failure === undefined) {
      await expectRedirectWithoutRetry(reader, code, target).catch((error: unknown) => {
        failure = error
      })
      count++
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const polling = Promise.all(readers.map(poll))
  return {
    hasFailed: () => failure !== undefined,
    /** Returns the number of redirects. Throws if one was not to the target. */
    async stop() {
      isStopping = true
      await polling
      if (failure !== undefined) throw new Error('an unchanged link failed', { cause: failure })
      return count
    },
  }
}

/** The figures on one line. */
export function renderCacheFaults(sum: CacheFaults): string {
  return Object.entries(sum)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
}

/** Runs the test at full size. */
export async function run(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const machines = await startManyMachines({ codes: 10_000 })
  try {
    const faults = Array.from({ length: FULL_FAULT_ROUNDS }, () => cacheFaults).flat()
    const size = { freshRounds: FULL_FRESH_ROUNDS, faults }
    given.log(renderCacheFaults(await faultCache({ machines, ...size, seed: given.seed })))
  } finally {
    await machines.stop()
  }
}
