// Two `create` and two `redirect` processes on three Cassandra nodes and one Redis while components
// fail: the short forms of the fault tests `alias`, `node-kill`, `cache-faults`, `pool-faults`,
// `machine-drain` and `two-down` of test/soak.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { raceForKeys } from '../../soak/alias.ts'
import { cacheFaults, faultCache } from '../../soak/cache-faults.ts'
import { drainMachine } from '../../soak/machine-drain.ts'
import { createDuringClusterFault } from '../../soak/node-kill.ts'
import {
  disconnectRefill,
  emptyPool,
  killCreatePods,
  refillRounds,
  rejectOtherSecret,
  watchPoolLevels,
} from '../../soak/pool-faults.ts'
import { killTwoNodes } from '../../soak/two-down.ts'
import { expireRound } from '../../kit/links/expired-links.ts'
import { type ManyMachines, startManyMachines } from '../../kit/processes/many-machines.ts'
import { createRandom, newSeed } from '../../kit/random.ts'
import { importRound } from '../../kit/transfer/import-round.ts'
import { hangTwoNodes, killAllNodes } from '../../kit/links/store-outage.ts'

const SETUP_MS_MAX = 900_000 // may have to download Java, Maven, the jars and Redis
const TEST_MS_MAX = 120_000
/** The ratio is high enough that some of the lost responses belong to claims. */
const SIZE = { creates: 250, lostRatio: 0.2 }
const FRESH_ROUNDS = 25
const FAULTS = 3
/** Faults of every run; each run also draws `FAULTS` random ones. */
const FIXED_FAULTS: readonly string[] = ['stopped between store and cache']
const LINKS = 10
const KEY_ROUNDS = 25

let machines: ManyMachines

beforeAll(async () => {
  machines = await startManyMachines({ codes: 10_000 })
}, SETUP_MS_MAX)

afterAll(async () => {
  await machines.stop()
}, TEST_MS_MAX)

/** A new seed, printed so that the run can be reproduced. */
function printSeed(name: string): number {
  const seed = newSeed()
  process.stdout.write(`${name}, seed ${String(seed)}\n`)
  return seed
}

describe('SIGTERM under load', () => {
  test.each(['create', 'redirect'] as const)(
    'stops a %s process without losing a request',
    async (role) => {
      const { responses, responsesAfterSignal } = await drainMachine(machines, role)
      expect(responses).toBeGreaterThan(responsesAfterSignal)
      expect(responsesAfterSignal).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )
})

describe('creates that are retried with their Idempotency-Key', () => {
  test(
    'by 2 to 32 clients concurrently get one fresh 201, and otherwise its replays',
    async () => {
      const seed = printSeed('concurrent keys')
      const { fresh, replayed } = await raceForKeys({ machines, rounds: KEY_ROUNDS, seed })
      expect([fresh, replayed]).toEqual([KEY_ROUNDS, (1 + 2 + 7 + 15 + 31) * 5])
    },
    TEST_MS_MAX,
  )

  test(
    'create exactly one link each, with its own target, while a Cassandra node is killed',
    async () => {
      const seed = printSeed('node-kill')
      const fault = 'killed node'
      const sum = await createDuringClusterFault({ machines, fault, ...SIZE, seed })
      expect(sum.created + sum.taken).toBeGreaterThanOrEqual(SIZE.creates)
    },
    TEST_MS_MAX,
  )

  test(
    'resolve unknown outcomes while responses from Cassandra are lost',
    async () => {
      const seed = printSeed('lost responses')
      const fault = 'lost responses'
      const sum = await createDuringClusterFault({ machines, fault, ...SIZE, seed })
      expect(sum.lost).toBeGreaterThan(0)
      expect(sum.resolved).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )
})

describe('faults of Redis', () => {
  test(
    'never hide a fresh link whose code a pod looked up before',
    async () => {
      const seed = printSeed('fresh links')
      const run = { machines, freshRounds: FRESH_ROUNDS, faults: [], seed }
      const { raced, steady } = await faultCache(run)
      expect(raced).toBeGreaterThan(FRESH_ROUNDS)
      expect(steady).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )

  test(
    'neither restore a disabled link nor hide a created link for more than 5 s',
    async () => {
      const seed = printSeed('cache faults')
      const random = createRandom(seed)
      const fixed = cacheFaults.filter(({ fault }) => FIXED_FAULTS.includes(fault))
      const others = Array.from({ length: FAULTS }, () => random.pick(cacheFaults))
      const faults = [...fixed, ...others]
      const { createFaults, disables } = await faultCache({
        ...{ machines, freshRounds: 0, faults, seed },
      })
      expect(createFaults + disables).toBe(faults.length)
    },
    TEST_MS_MAX,
  )
})

test(
  'an expired link is 404 from memory, cache and store, while its row still exists',
  async () => {
    const { before, tiers } = await expireRound(machines)
    expect(before).toBeGreaterThan(0)
    expect(tiers).toEqual(['memory', 'cache', 'store'])
  },
  TEST_MS_MAX,
)

test(
  'every kind of row is imported once, exported by each process, and redirected if active',
  async () => {
    const { exitCodes, summaries, exported, expected, lookups } = await importRound(machines, 'i-')
    expect(exitCodes).toEqual([3, 0, 0, 3]) // 3: a conflict and an invalid row
    const rejected = { ROWS: 9, CONFLICT: 1, INVALID: 1, EXPIRED: 1, FAILED: 0 }
    expect(summaries).toMatchObject([
      { ...rejected, CREATED: 4, REPLACED: 1, EXISTS: 1 },
      { ...rejected, CREATED: 0, REPLACED: 1, EXISTS: 5 },
    ])
    expect(exported).toEqual([expected, expected])
    const [redirects, notFound] = [
      ['redirect', 'redirect'],
      [404, 404],
    ]
    expect(lookups).toEqual({
      ...{ active: redirects, expiring: redirects, replaced: redirects },
      ...{ disabled: notFound, deleted: notFound },
    })
  },
  TEST_MS_MAX,
)

describe('a pool of codes', () => {
  test(
    'rejects only creates without an alias while it is empty, until a refill',
    async () => {
      expect(await emptyPool(machines)).toBeGreaterThan(900)
    },
    TEST_MS_MAX,
  )

  test(
    'accepts a refill only with its own code secret',
    async () => {
      expect(await rejectOtherSecret(machines)).toMatch(/a different code secret/)
    },
    TEST_MS_MAX,
  )

  test(
    'loses no block to four killed refills, and few codes to a killed create pod',
    async () => {
      const seed = printSeed('pool faults')
      const { blocks } = await refillRounds({ machines, rounds: 2, seed, resetRatio: 0 })
      expect(blocks).toBeGreaterThan(0)
      await killCreatePods({ machines, kills: 1, seed })
    },
    TEST_MS_MAX,
  )

  test(
    'never counts a block that does not exist, while refills and claims run',
    async () => {
      const seed = printSeed('pool levels')
      const { claimed, moved } = await watchPoolLevels({ machines, rounds: 2, seed })
      expect(claimed).toBeGreaterThan(0)
      expect(moved).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )

  test(
    'is refilled by a Job that completes although its connections were destroyed',
    async () => {
      expect(await disconnectRefill(machines)).toMatch(/"filled"/)
    },
    TEST_MS_MAX,
  )
})

test(
  'resolved links redirect while two of three nodes are down, and the service returns no false 404',
  async () => {
    const seed = printSeed('two-down')
    const sum = await killTwoNodes({ machines, links: LINKS, seed })
    expect(sum.createsRejected).toBe(6)
    expect(sum.unresolvedRedirects + sum.unresolvedRejections).toBe(2 * LINKS)
    expect(sum.redirectedFromReplica).toBe(2 * LINKS)
    expect(sum.missed).toBe(2 * LINKS)
  },
  TEST_MS_MAX,
)

test(
  'creates time out while two of three nodes hang, are then rejected immediately, and recover',
  async () => {
    const { firstMsMax, fastMsMax, recoveryMs } = await hangTwoNodes(machines, 'h')
    process.stdout.write(
      `two nodes hang: rejected after at most ${String(firstMsMax)} ms, ` +
        `then ${String(fastMsMax)} ms; recovered after ${String(recoveryMs)} ms\n`,
    )
    expect(fastMsMax).toBeLessThan(firstMsMax)
  },
  TEST_MS_MAX,
)

test(
  'the service loses no acknowledged link and claims no alias twice after all nodes are killed',
  async () => {
    expect(await killAllNodes(machines, 'crash')).toBeGreaterThan(0)
  },
  TEST_MS_MAX,
)
