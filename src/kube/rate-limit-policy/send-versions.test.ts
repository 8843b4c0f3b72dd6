// The versions that limiters receive: while the API server works, every limiter that starts without
// a leader finds at least the newest of them in the Secret, whenever a leader crashes.
import { expect, test } from '@jest/globals'
import { startVersionWorld, versionOf } from '../../../test/kit/kube/version-world.ts'
import { createRandom, newSeed } from '../../../test/kit/random.ts'

const STEP_MS = 50
const STORE_MS_MAX = 1000

test('a version is sent once it is stored', async () => {
  const { startLeader, advance, sent } = startVersionWorld(() => ({ ms: 300 }), STEP_MS)
  const { send } = startLeader()
  send(versionOf('a'), [])
  await advance(500)
  expect(sent).toEqual([])
  await advance(300)
  expect(sent).toMatchObject([{ version: 'a', stored: 'a' }])
  send(versionOf('a'), []) // for a limiter that has connected in the meantime
  expect(sent).toHaveLength(2)
  await advance(5000)
  expect(sent).toHaveLength(2)
})

test('a version is sent after 1 s if the API server does not respond', async () => {
  const { startLeader, advance, sent } = startVersionWorld(() => ({ ms: 30_000 }), STEP_MS)
  const { send } = startLeader()
  send(versionOf('a'), [])
  await advance(500)
  send(versionOf('b'), [])
  await advance(550)
  expect(sent).toMatchObject([{ version: 'b', atMs: STORE_MS_MAX }])
  await advance(120_000)
  expect(sent).toHaveLength(1)
})

test('versions that cannot be stored are sent at once', async () => {
  const world = startVersionWorld(undefined, STEP_MS)
  world.remove()
  const { send } = world.startLeader()
  for (const version of ['a', 'b', 'c']) {
    send(versionOf(version), [])
    await world.advance(2 * STEP_MS)
  }
  expect(world.sent.map(({ version }) => version)).toEqual(['a', 'b', 'c'])
})

test('a version is stored, and then sent, even if another client changes the Secret', async () => {
  const world = startVersionWorld(() => ({ ms: 100 }), STEP_MS)
  const { send } = world.startLeader()
  send(versionOf('a'), [])
  await world.advance(150) // between the read and the write
  world.touch()
  await world.advance(700)
  expect(world.sent).toMatchObject([{ version: 'a', stored: 'a' }])
  expect(await world.failures()).toBe(0)
})

test('while another client keeps changing the Secret, retries slow down', async () => {
  const world = startVersionWorld(() => ({ ms: 100 }), STEP_MS)
  const { send } = world.startLeader()
  send(versionOf('a'), [])
  for (let elapsedMs = 0; elapsedMs < 60_000; elapsedMs += STEP_MS) {
    await world.advance(STEP_MS)
    world.touch()
  }
  expect(world.sent).toMatchObject([{ version: 'a', atMs: STORE_MS_MAX }])
  expect(world.stored()).toBeUndefined()
  expect(world.calls.length).toBeLessThan(30)
  await world.advance(30_000)
  expect(world.stored()).toBe('a')
})

test('conflicts that a retry resolves do not slow down later versions', async () => {
  const world = startVersionWorld(() => ({ ms: 100 }), STEP_MS)
  const { send } = world.startLeader()
  for (let at = 0; at < 12; at++) {
    send(versionOf(`v${at}`), [])
    await world.advance(150) // between the read and the write
    world.touch()
    await world.advance(700)
    expect(world.stored()).toBe(`v${at}`)
    await world.advance(20_000)
  }
})

test('a replica without the Lease sends nothing', async () => {
  const world = startVersionWorld(undefined, STEP_MS)
  let isLeading = false
  const { send, stop } = world.startLeader({ isLeading: () => isLeading })
  send(versionOf('a'), [])
  await world.advance(3 * STORE_MS_MAX)
  expect(world.sent).toEqual([])
  isLeading = true // the Lease was renewed
  await world.advance(STORE_MS_MAX)
  expect(world.sent).toMatchObject([{ version: 'a' }])
  isLeading = false
  send(versionOf('b'), [])
  stop()
  isLeading = true
  await world.advance(3 * STORE_MS_MAX)
  expect(world.sent).toHaveLength(1)
})

const ROUNDS = 150
const numberOf = (version = 'v-1') => Number(version.slice(1))

test.each([
  ['while the API server works, each is stored before it is sent', false],
  ['whatever the API server does, each is sent within 1 s', true],
])('versions at random times with crashes of leaders: %s', async (_name, isFaulty) => {
  const seed = newSeed()
  process.stdout.write(`seed ${seed}\n`)
  const random = createRandom(seed)
  const world = startVersionWorld(() => {
    if (!isFaulty) return { ms: random.int(150) }
    const ms = random.int(2000)
    return random.chance(0.3) ? { ms, fault: random.chance(0.5) ? 'before' : 'after' } : { ms }
  }, STEP_MS)
  let leader = world.startLeader()
  let newest = -1
  /** When the oldest version that this leader has not sent was recorded. */
  let unsentMs: number | undefined
  for (let round = 0; round < ROUNDS; round++) {
    if (random.chance(0.1)) {
      leader.crash()
      const last = numberOf(world.sent.at(-1)?.version)
      if (!isFaulty) expect(numberOf(world.stored())).toBeGreaterThanOrEqual(last)
      await world.advance(15_000) // the duration of the Lease
      leader = world.startLeader()
      unsentMs = undefined
    } else newest++
    leader.send(versionOf(`v${newest}`), [])
    unsentMs ??= world.scheduler.nowMs()
    await world.advance(random.int(700))
    if (numberOf(world.sent.at(-1)?.version) === newest) unsentMs = undefined
    const waitMs = world.scheduler.nowMs() - (unsentMs ?? world.scheduler.nowMs())
    // A version that is sent in between restarts the wait for the next one.
    expect(waitMs).toBeLessThan(2 * STORE_MS_MAX + 700)
  }
  await world.advance(2 * STORE_MS_MAX)
  expect(numberOf(world.sent.at(-1)?.version)).toBe(newest)
  const sent = world.sent.map(({ version }) => numberOf(version))
  expect(sent).toEqual(sent.toSorted((a, b) => a - b))
  if (isFaulty) return
  for (const { version, stored } of world.sent)
    expect(numberOf(stored)).toBeGreaterThanOrEqual(numberOf(version))
})
