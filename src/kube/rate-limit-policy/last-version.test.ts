// The version that is stored for limiters: after random changes, faults of the API server and
// crashes of leaders, the Secret contains the newest version, and never one that was not compiled.
import { randomBytes } from 'node:crypto'
import { expect, test } from '@jest/globals'
import {
  QUIET_LOG as log,
  startVersionWorld as startWorld,
  VERSION_KEY,
  versionOf,
} from '../../../test/kit/kube/version-world.ts'
import { createRandom, newSeed, type Random } from '../../../test/kit/random.ts'

const recordTo = (logged: unknown[]) => (_fields: unknown, msg?: unknown) => {
  logged.push(msg)
}

test('the newest of several versions is stored once, and then nothing is written', async () => {
  const { startLeader, advance, history, calls, annotation } = startWorld()
  const { send } = startLeader()
  for (const name of ['a', 'b', 'c']) send(versionOf(name), [])
  await advance(60_000)
  expect(history).toEqual(['c'])
  expect(annotation()).toEqual({ 'curtail.dev/version': 'c' })
  send(versionOf('c'), [])
  await advance(60_000)
  expect(calls.map(({ method }) => method)).toEqual(['GET', 'PATCH'])
})

test('a new leader reads the version once, and writes only a different one', async () => {
  const { startLeader, advance, history, calls } = startWorld()
  const first = startLeader()
  first.send(versionOf('a'), [])
  await advance(5000)
  first.crash()
  const second = startLeader()
  second.send(versionOf('a'), [])
  await advance(60_000)
  expect(calls.map(({ method }) => method)).toEqual(['GET', 'PATCH', 'GET'])
  second.send(versionOf('b'), [])
  await advance(60_000)
  expect(history).toEqual(['a', 'b'])
})

test('a version that reverts during its write is stored', async () => {
  const { startLeader, advance, history } = startWorld(() => ({ ms: 3000 }))
  const { send } = startLeader()
  send(versionOf('a'), [])
  await advance(30_000)
  send(versionOf('b'), [])
  await advance(5000)
  send(versionOf('a'), [])
  await advance(60_000)
  expect(history).toEqual(['a', 'b', 'a'])
})

test('a version that is too large is logged and counted once, and not written', async () => {
  const world = startWorld()
  const logged: unknown[] = []
  const { send } = world.startLeader({ log: { ...log, warn: recordTo(logged) } })
  send(versionOf('a'), [])
  await world.advance(30_000)
  const large = versionOf('large', randomBytes(1024 * 1024 + 1))
  send(large, [])
  await world.advance(30_000)
  send(large, [])
  await world.advance(30_000)
  expect(logged).toEqual(['version not stored: more than 1048576 bytes'])
  expect([world.stored(), await world.failures()]).toEqual(['a', 1])
})

test('a missing Secret is logged once; the write is retried at least every minute', async () => {
  const world = startWorld()
  const logged: unknown[] = []
  const { send } = world.startLeader({ log: { ...log, warn: recordTo(logged) } })
  world.remove()
  send(versionOf('a'), [])
  await world.advance(300_000)
  expect(logged).toEqual(['last version not stored: retrying'])
  expect(await world.failures()).toBe(world.calls.length)
  expect(world.calls.length).toBeLessThan(15)
  world.restore()
  await world.advance(60_000)
  expect(world.stored()).toBe('a')
})

test.each([
  ['empties', undefined],
  ['damages', { [VERSION_KEY]: 'AAAA' }],
])('a Secret that an operator %s is restored within 10 minutes', async (_name, data) => {
  const world = startWorld()
  const { send } = world.startLeader()
  send(versionOf('a'), [])
  await world.advance(30_000)
  world.restore(data)
  await world.advance(600_000)
  expect([world.stored(), world.history]).toEqual(['a', ['a', 'a']])
  await world.advance(3_600_000)
  expect(world.writes()).toHaveLength(2)
})

const ROUNDS = 40
const STEPS_MAX = 6
const fateOf = (random: Random) => () => {
  const ms = random.int(9000)
  if (random.chance(0.2)) return { ms, fault: 'before' as const }
  return random.chance(0.2) ? { ms, fault: 'after' as const } : { ms }
}

test('after each round of changes, faults and crashes, the newest version is stored', async () => {
  const seed = newSeed()
  process.stdout.write(`seed ${seed}\n`)
  const random = createRandom(seed)
  let isFaulty = true
  const fate = fateOf(random)
  const world = startWorld(() => (isFaulty ? fate() : { ms: 100 }))
  let leader = world.startLeader()
  let newest = 'v0'
  for (let round = 0; round < ROUNDS; round++) {
    isFaulty = true
    for (let step = random.int(STEPS_MAX); step >= 0; step--) {
      if (random.chance(0.2)) {
        leader.crash()
        await world.advance(15_000) // the duration of the Lease
        leader = world.startLeader()
      } else {
        newest = `v${random.int(3)}`
      }
      leader.send(versionOf(newest), [])
      await world.advance(random.int(6000))
    }
    isFaulty = false
    await world.advance(90_000)
    expect(world.stored()).toBe(newest)
    const { length } = world.writes()
    await world.advance(30_000)
    expect(world.writes()).toHaveLength(length)
  }
  expect([...new Set(world.history)].sort()).toEqual(['v0', 'v1', 'v2'])
})

test.each([
  ['small ones at once', 10, 450],
  ['large ones at most once in 2 s', 200_000, 2000],
])('versions that change all the time are written: %s', async (_name, bytes, intervalMs) => {
  const world = startWorld(() => ({ ms: 10 }), 50)
  const { send } = world.startLeader()
  for (let at = 0; at < 40; at++) {
    send(versionOf(`v${at}`, randomBytes(bytes)), [])
    await world.advance(500)
  }
  const times = world.writes().map(({ atMs }) => atMs)
  expect(times.length).toBeGreaterThanOrEqual(20_000 / intervalMs / 2)
  for (const [at, ms] of times.slice(1).entries())
    expect(ms - (times[at] ?? 0)).toBeGreaterThanOrEqual(intervalMs)
})
