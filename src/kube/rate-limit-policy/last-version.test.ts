// The version that is stored for limiters: after random changes, faults of the API server and
// crashes of leaders, the Secret contains the newest version, and never one that was not compiled.
import { gunzipSync } from 'node:zlib'
import { randomBytes } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createFakeScheduler, type FakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createRandom, newSeed, type Random } from '../../../test/kit/random.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { runWorkers } from '../run-workers.ts'
import { createWorkQueue } from '../work-queue.ts'
import { createLastVersion, type LastVersionDeps } from './last-version.ts'
import type { CompiledVersion } from './rules-port.ts'

const PATH = '/api/v1/namespaces/n/secrets/versions'
const KEY = 'version.pb.gz'
/** Waited for only if a version is too large: otherwise a call follows the compression. */
const COMPRESSION_MS_MAX = 200
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined }
const log = { ...quiet, error: () => undefined }
const versionOf = (version: string, bytes = Buffer.from(version)): CompiledVersion => ({
  version,
  resources: [bytes],
})

const recordTo = (logged: unknown[]) => (_fields: unknown, msg?: unknown) => {
  logged.push(msg)
}

interface Patch {
  readonly metadata: { resourceVersion: string; annotations: Readonly<Record<string, string>> }
  readonly data: Readonly<Record<string, string>>
}

/** What happens to a call, and how long it takes. */
type Fate = () => { readonly ms: number; readonly fault?: 'before' | 'after' }

/** A Secret and its API server; `onCall` is called at the start of each call. */
function startServer(scheduler: FakeScheduler, fate: Fate, onCall: (method: string) => void) {
  let secret: { metadata: object; data?: Readonly<Record<string, string>> } | undefined = {
    metadata: { resourceVersion: '1' },
  }
  let revision = 1
  /** Every version that was stored. */
  const history: string[] = []
  const decode = (data: Readonly<Record<string, string>>) =>
    gunzipSync(Buffer.from(data[KEY] ?? '', 'base64')).toString()
  const operate = ({ method, body }: { method: string; body?: unknown }) => {
    if (secret === undefined) throw new KubeError('none', { status: 404, reason: 'NotFound' })
    if (method === 'GET') return secret
    const { metadata, data } = body as Patch
    if (metadata.resourceVersion !== String(revision))
      throw new KubeError('changed', { status: 409, reason: 'Conflict' })
    revision++
    secret = { metadata: { ...metadata, resourceVersion: String(revision) }, data }
    history.push(decode(data))
    return secret
  }
  const lost = () => new KubeError('lost', { status: 0, reason: 'Unreachable' })
  const api: Pick<KubeApi, 'call'> = {
    async call(call) {
      const { method, path } = call
      if (path !== PATH) throw new Error(path)
      onCall(method)
      const { ms, fault } = fate()
      await new Promise<void>((resolve) => scheduler.after(ms, resolve))
      if (fault === 'before') throw lost()
      const result = operate(call)
      if (fault === 'after') throw lost()
      return result
    },
  }
  return {
    ...{ api, history },
    stored: () => secret?.data && decode(secret.data),
    annotation: () => (secret?.metadata as Partial<Patch['metadata']>).annotations,
    remove: () => (secret = undefined),
    restore: (data?: Readonly<Record<string, string>>) =>
      (secret = { metadata: { resourceVersion: String(revision) }, ...(data && { data }) }),
  }
}

/** A Secret, and leaders that store versions in it. */
function startWorld(fate: Fate = () => ({ ms: 0 })) {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const calls: { method: string; atMs: number }[] = []
  /** The number of versions that are being compressed, which happens in another thread. */
  let compressing = 0
  const server = startServer(scheduler, fate, (method) => {
    calls.push({ method, atMs: scheduler.nowMs() })
    if (method === 'GET') compressing--
  })
  const startLeader = (given: Partial<LastVersionDeps> = {}) => {
    const queue = createWorkQueue({ name: 'q', scheduler, metrics })
    const crashing = new AbortController()
    const kept = createLastVersion({
      api: server.api,
      secret: { namespace: 'n', name: 'versions' },
      serialize({ resources }) {
        compressing++
        return Promise.resolve(Buffer.concat(resources))
      },
      enqueue: (ms) => {
        queue.addAfter('version', ms)
      },
      ...{ scheduler, random: () => 0.5, metrics, log },
      ...given,
    })
    const reconcile = (_key: string, signal: AbortSignal) => kept.write(signal)
    const options = { name: 'q', queue, workers: 1, reconcile, scheduler, metrics, log }
    void runWorkers(options, crashing.signal)
    const crash = () => {
      crashing.abort()
      queue.shutDown()
    }
    return { record: kept.record, crash }
  }
  const advance = async (ms: number) => {
    for (let left = ms; left > 0; left -= 500) {
      await scheduler.advance(Math.min(left, 500))
      for (let i = 0; i < COMPRESSION_MS_MAX && compressing > 0; i++)
        await new Promise((resolve) => setTimeout(resolve, 1))
      compressing = 0
    }
  }
  const failures = async () => {
    const { values } = await metrics.backgroundFailures.get()
    return values.find(({ labels }) => labels.task === 'store-version')?.value ?? 0
  }
  return {
    ...server,
    ...{ calls, startLeader, advance, failures },
    writes: () => calls.filter(({ method }) => method === 'PATCH'),
  }
}

test('the newest of several versions is stored once, and then nothing is written', async () => {
  const { startLeader, advance, history, calls, annotation } = startWorld()
  const { record } = startLeader()
  for (const name of ['a', 'b', 'c']) record(versionOf(name))
  await advance(60_000)
  expect(history).toEqual(['c'])
  expect(annotation()).toEqual({ 'curtail.dev/version': 'c' })
  record(versionOf('c'))
  await advance(60_000)
  expect(calls.map(({ method }) => method)).toEqual(['GET', 'PATCH'])
})

test('a new leader reads the version once, and writes only another one', async () => {
  const { startLeader, advance, history, calls } = startWorld()
  const first = startLeader()
  first.record(versionOf('a'))
  await advance(5000)
  first.crash()
  const second = startLeader()
  second.record(versionOf('a'))
  await advance(60_000)
  expect(calls.map(({ method }) => method)).toEqual(['GET', 'PATCH', 'GET'])
  second.record(versionOf('b'))
  await advance(60_000)
  expect(history).toEqual(['a', 'b'])
})

test('a version that reverts during its write is stored', async () => {
  const { startLeader, advance, history } = startWorld(() => ({ ms: 3000 }))
  const { record } = startLeader()
  record(versionOf('a'))
  await advance(30_000)
  record(versionOf('b'))
  await advance(5000)
  record(versionOf('a'))
  await advance(60_000)
  expect(history).toEqual(['a', 'b', 'a'])
})

test('a version that is too large is not written, logged and counted once', async () => {
  const world = startWorld()
  const logged: unknown[] = []
  const { record } = world.startLeader({ log: { ...log, warn: recordTo(logged) } })
  record(versionOf('a'))
  await world.advance(30_000)
  const large = versionOf('large', randomBytes(1024 * 1024 + 1))
  record(large)
  await world.advance(30_000)
  record(large)
  await world.advance(30_000)
  expect(logged).toEqual(['version not stored: more than 1048576 bytes'])
  expect([world.stored(), await world.failures()]).toEqual(['a', 1])
})

test('a missing Secret is logged once, and retried at least every minute', async () => {
  const world = startWorld()
  const logged: unknown[] = []
  const { record } = world.startLeader({ log: { ...log, warn: recordTo(logged) } })
  world.remove()
  record(versionOf('a'))
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
  ['damages', { [KEY]: 'AAAA' }],
])('a Secret that an operator %s is restored within 10 minutes', async (_name, data) => {
  const world = startWorld()
  const { record } = world.startLeader()
  record(versionOf('a'))
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
      leader.record(versionOf(newest))
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

test('versions that change all the time are written at most once in 10 s', async () => {
  const world = startWorld(() => ({ ms: 100 }))
  const { record } = world.startLeader()
  for (let at = 0; at < 200; at++) {
    record(versionOf(`v${at}`))
    await world.advance(500)
  }
  const times = world.writes().map(({ atMs }) => atMs)
  expect(times.length).toBeGreaterThanOrEqual(9)
  for (const [at, ms] of times.slice(1).entries())
    expect(ms - (times[at] ?? 0)).toBeGreaterThanOrEqual(10_000)
})
