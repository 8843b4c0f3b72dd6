// A Redis that is stopped, killed, flushed or partitioned from one process: redirects stay correct,
// a fresh link redirects at once although its code was a miss just before, a disabled link stops.
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

/** Each of them once. */
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
  /** Answers to readers who asked before and while the link was made. */
  readonly raced: number
  readonly flushes: number
  readonly createFaults: number
  readonly disables: number
  /** The longest from the answer to a disable until it was gone everywhere. */
  readonly goneMsMax: number
  /** Redirects of a link that nothing happened to, all the while. */
  readonly steady: number
}

/** Runs so many rounds. Throws what it found. */
export async function faultCache(given: {
  machines: ManyMachines
  freshRounds: number
  /** What of Redis fails, one after the other. */
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
  const creators = openHttpClients(machines.creates)
  const readers = openHttpClients(machines.redirects)
  const sum = { raced: 0, flushes: 0, createFaults: 0, disables: 0, goneMsMax: 0 }
  const steady = watchSteady(readers.all, await makeSteady(creators.all, name()))
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
        const goneMs = await disableRound({ machines, alias: `d-${name()}`, fault: fault.fault })
        sum.goneMsMax = Math.max(sum.goneMsMax, Math.round(goneMs))
        sum.disables++
      }
    }
    return { freshRounds, ...sum, steady: await steady.end() }
  } finally {
    await steady.end().catch(() => undefined) // thrown above, or an earlier fault is told of
    creators.close()
    readers.close()
  }
}

interface Steady {
  readonly code: string
  readonly target: string
}

async function makeSteady(creators: readonly HttpClient[], alias: string): Promise<Steady> {
  const target = `https://example.com/steady/${alias}`
  await createWithRetries(creators, { key: `steady-${alias}`, target, alias: `s-${alias}` })
  return { code: `s-${alias}`, target }
}

/** Follows one link without pause, through every process, until it is told to end. */
function watchSteady(readers: readonly HttpClient[], { code, target }: Steady) {
  let isEnding = false
  let count = 0
  let failure: unknown
  const follow = async (reader: HttpClient) => {
    while (!isEnding && failure === undefined) {
      await expectRedirectWithoutRetry(reader, code, target).catch((error: unknown) => {
        failure = error
      })
      count++
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const following = Promise.all(readers.map(follow))
  return {
    hasFailed: () => failure !== undefined,
    /** How often it was followed. Throws where it did not lead to its target once. */
    async end() {
      isEnding = true
      await following
      if (failure !== undefined) throw new Error('a link that nobody touched', { cause: failure })
      return count
    },
  }
}

/** One line of figures. */
export function renderCacheFaults(sum: CacheFaults): string {
  return Object.entries(sum)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
}

/** The full size. */
export async function storm(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const machines = await startManyMachines({ codes: 10_000 })
  try {
    const faults = Array.from({ length: FULL_FAULT_ROUNDS }, () => cacheFaults).flat()
    const size = { freshRounds: FULL_FRESH_ROUNDS, faults }
    given.log(renderCacheFaults(await faultCache({ machines, ...size, seed: given.seed })))
  } finally {
    await machines.stop()
  }
}
