// Two `create` and two `redirect` processes on three nodes of Cassandra and a Redis while parts of
// it fail: the small sizes of the storms `alias`, `node-kill`, `cache-faults`, `pool-faults`,
// `machine-drain` and `two-down`.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { raceForKeys } from '../storm/alias.ts'
import { cacheFaults, faultCache } from '../storm/cache-faults.ts'
import { drainMachine } from '../storm/machine-drain.ts'
import { createThroughTrouble } from '../storm/node-kill.ts'
import {
  cutRefill,
  emptyPool,
  killCreators,
  refillRounds,
  refuseOtherSecret,
  watchPoolLevels,
} from '../storm/pool-faults.ts'
import { takeTwoDown } from '../storm/two-down.ts'
import { expireRound } from './expired-links.ts'
import { type ManyMachines, startManyMachines } from './many-machines.ts'
import { createRandom, newSeed } from './random.ts'
import { hangTwoNodes, killAllNodes } from './store-outage.ts'

const SETUP_MS_MAX = 900_000 // Java, Maven, the jars and Redis may have to be fetched
const TEST_MS_MAX = 120_000
/** So many answers get lost that a claim is among them, surely. */
const SIZE = { creates: 250, lostRatio: 0.2 }
const FRESH_ROUNDS = 25
const FAULTS = 3
/** Those that are met every time; of all of them some more are drawn. */
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

/** A seed, said aloud, so that a run can be repeated. */
function saySeed(name: string): number {
  const seed = newSeed()
  process.stdout.write(`${name}, seed ${String(seed)}\n`)
  return seed
}

describe('SIGTERM under load', () => {
  test.each(['create', 'redirect'] as const)(
    'to a %s process loses no request',
    async (role) => {
      const { answered, late } = await drainMachine(machines, role)
      expect(answered).toBeGreaterThan(late)
      expect(late).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )
})

describe('creates that are repeated by their key', () => {
  test(
    'at the same moment, by 2 to 32 clients: one fresh 201, all others are its replays',
    async () => {
      const seed = saySeed('keys at once')
      const { fresh, replayed } = await raceForKeys({ machines, rounds: KEY_ROUNDS, seed })
      expect([fresh, replayed]).toEqual([KEY_ROUNDS, (1 + 2 + 7 + 15 + 31) * 5])
    },
    TEST_MS_MAX,
  )

  test(
    'each lead to their own target, once, though a node of Cassandra was killed',
    async () => {
      const seed = saySeed('node-kill')
      const trouble = 'killed node'
      const sum = await createThroughTrouble({ machines, trouble, ...SIZE, seed })
      expect(sum.told + sum.taken).toBeGreaterThanOrEqual(SIZE.creates)
    },
    TEST_MS_MAX,
  )

  test(
    'the same while answers of Cassandra get lost: outcomes that are unknown are learnt',
    async () => {
      const seed = saySeed('lost answers')
      const trouble = 'lost answers'
      const sum = await createThroughTrouble({ machines, trouble, ...SIZE, seed })
      expect(sum.lost).toBeGreaterThan(0)
      expect(sum.resolved).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )
})

describe('a Redis that fails', () => {
  test(
    'never keeps a fresh link from those who asked for it before',
    async () => {
      const seed = saySeed('fresh links')
      const run = { machines, freshRounds: FRESH_ROUNDS, faults: [], seed }
      const { raced, steady } = await faultCache(run)
      expect(raced).toBeGreaterThan(FRESH_ROUNDS)
      expect(steady).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )

  test(
    'brings back no link that was disabled, and hides none that was made, beyond 5 s',
    async () => {
      const seed = saySeed('cache faults')
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
  'a link is 404 from its end on, from memory, cache and store, though its row is still there',
  async () => {
    const { before, tiers } = await expireRound(machines)
    expect(before).toBeGreaterThan(0)
    expect(tiers).toEqual(['memory', 'cache', 'store'])
  },
  TEST_MS_MAX,
)

describe('a pool of codes', () => {
  test(
    'that is empty refuses generated codes alone, until a refill',
    async () => {
      expect(await emptyPool(machines)).toBeGreaterThan(900)
    },
    TEST_MS_MAX,
  )

  test(
    'is refilled with its own secret alone',
    async () => {
      expect(await refuseOtherSecret(machines)).toMatch(/another code secret/)
    },
    TEST_MS_MAX,
  )

  test(
    'loses no block by four refills at once, killed at random, and little by a killed creator',
    async () => {
      const seed = saySeed('pool faults')
      const { blocks } = await refillRounds({ machines, rounds: 2, seed, cutRatio: 0 })
      expect(blocks).toBeGreaterThan(0)
      await killCreators({ machines, kills: 1, seed })
    },
    TEST_MS_MAX,
  )

  test(
    'never says that a block is there which is not, while refills and claims run',
    async () => {
      const seed = saySeed('pool levels')
      const { claimed, moved } = await watchPoolLevels({ machines, rounds: 2, seed })
      expect(claimed).toBeGreaterThan(0)
      expect(moved).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )

  test(
    'is refilled by a Job that ends, though its connections were cut',
    async () => {
      expect(await cutRefill(machines)).toMatch(/"filled"/)
    },
    TEST_MS_MAX,
  )
})

test(
  'two of three nodes down: what was seen redirects, nothing is a false 404, and all heals',
  async () => {
    const seed = saySeed('two-down')
    const sum = await takeTwoDown({ machines, links: LINKS, seed })
    expect(sum.createsRefused).toBe(6)
    expect(sum.unseenRedirects + sum.unseenRefusals).toBe(2 * LINKS)
    expect(sum.foundOnReplica).toBe(2 * LINKS)
    expect(sum.missed).toBe(2 * LINKS)
  },
  TEST_MS_MAX,
)

test(
  'two of three nodes hang: creates are rejected in time, at once when it is known, and recover',
  async () => {
    const { firstMsMax, knownMsMax, recoveryMs } = await hangTwoNodes(machines, 'h')
    process.stdout.write(
      `two nodes hang: rejected after at most ${String(firstMsMax)} ms, ` +
        `then ${String(knownMsMax)} ms; recovered after ${String(recoveryMs)} ms\n`,
    )
    expect(knownMsMax).toBeLessThan(firstMsMax)
  },
  TEST_MS_MAX,
)

test(
  'all nodes killed at once: no acknowledged link is lost, nor its alias given away',
  async () => {
    expect(await killAllNodes(machines, 'crash')).toBeGreaterThan(0)
  },
  TEST_MS_MAX,
)
