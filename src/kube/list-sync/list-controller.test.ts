// The controller of operator lists on a simulated clock: after the last change, every pod has an
// annotation from which its kubelet, whose view of the objects is behind, mounts the current lists.
import { expect, test } from '@jest/globals'
import {
  createListWorld,
  type ListWorld,
  OBJECTS,
  PATHS,
  type Replica,
} from '../../../test/kit/kube/list-world.ts'
import { KubeError } from '../kube-error.ts'

/** Within this time after a change, every pod has the current lists. */
const EFFECTIVE_MS_MAX = 2000
/** The bound if the kubelet's watch lags because of a fault of the API server. */
const FINAL_MS_MAX = 36_000
const BEHIND_MS = 34_000
const PODS = ['a', 'b', 'c']

const failure = (status: number) => new KubeError('no', { status, reason: 'InternalError' })
const isPatch = (call: object) => 'method' in call && call.method === 'PATCH'
const isPodList = (call: object) =>
  'method' in call && call.method === 'GET' && 'path' in call && call.path === PATHS.pods

/** A world whose leader has completed all annotations of the first state of the lists. */
async function startSettled(pods = PODS): Promise<{ world: ListWorld; leader: Replica }> {
  const world = createListWorld(pods)
  const leader = world.lead()
  await world.advance(FINAL_MS_MAX)
  return { world, leader }
}

const failuresOf = async ({ metrics }: ListWorld) => {
  const { values } = await metrics.backgroundFailures.get()
  return values.find(({ labels }) => labels.task === 'annotate-pods')?.value ?? 0
}

test('a change annotates only the selected pods, each with three values in turn', async () => {
  const { world, leader } = await startSettled()
  world.store.create(PATHS.pods, { metadata: { name: 'other', labels: { app: 'other' } } })
  const before = world.patchesOf('a').length
  world.change()
  await world.advance(150)
  expect(world.outdated()).toEqual([...PODS, 'other']) // the kubelet's view is behind
  for (const pod of PODS) expect(world.patchesOf(pod)).toHaveLength(before + 1)
  await world.advance(EFFECTIVE_MS_MAX - 150)
  expect(world.outdated()).toEqual(['other'])
  for (const pod of PODS) {
    const values = world.patchesOf(pod).slice(before)
    expect(values).toEqual([values[0], `${values[0]}.confirmed`])
  }
  await world.advance(FINAL_MS_MAX - EFFECTIVE_MS_MAX)
  for (const pod of PODS) {
    const [value, , ...final] = world.patchesOf(pod).slice(before)
    expect(final).toEqual([`${value}.final`])
  }
  expect(world.patchesOf('other')).toEqual([])
  const calls = world.calls.length
  await world.advance(60_000)
  expect(world.calls).toHaveLength(calls)
  await leader.stop()
})

test('each object is selected by its name, and the server sends only metadata', async () => {
  const { world, leader } = await startSettled()
  const byName = OBJECTS.map(({ name }) => `metadata.name=${name}`)
  const lists = world.calls.filter(({ path }) => path !== PATHS.pods && !path.includes('/pods/'))
  expect(lists.map(({ query }) => query?.['fieldSelector'])).toEqual(byName)
  expect(world.watches.map(({ query }) => query['fieldSelector'])).toEqual(byName)
  for (const { method, accept } of world.calls)
    if (method === 'GET') expect(accept).toContain(';as=PartialObjectMetadataList;')
  for (const { accept } of world.watches) expect(accept).toContain(';as=PartialObjectMetadata;')
  await leader.stop()
})

test('a second change during the patches is annotated on every pod, too', async () => {
  const { world, leader } = await startSettled()
  const before = world.patchesOf('a').length
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
  world.intercept = (call) => (isPatch(call) ? released : Promise.resolve())
  world.change()
  await world.advance(200)
  world.change(OBJECTS[0])
  await world.advance(200)
  world.intercept = () => Promise.resolve()
  release(undefined)
  await world.advance(EFFECTIVE_MS_MAX)
  expect(world.outdated()).toEqual([])
  for (const pod of PODS) {
    const versions = world.patchesOf(pod).slice(before)
    expect(new Set(versions).size).toBe(3) // one of the first change, two of the second
  }
  await leader.stop()
})

test('two quick changes annotate the pods together', async () => {
  const { world, leader } = await startSettled()
  const before = world.patchesOf('a').length
  world.change()
  await world.advance(20)
  world.change(OBJECTS[0])
  await world.advance(EFFECTIVE_MS_MAX)
  expect(world.outdated()).toEqual([])
  expect(world.patchesOf('a')).toHaveLength(before + 2)
  await leader.stop()
})

test('a failed list of pods is counted and retried with back-off', async () => {
  const { world, leader } = await startSettled()
  let lists = 0
  world.intercept = (call) => {
    if (!isPodList(call)) return Promise.resolve()
    lists++
    return Promise.reject(failure(500))
  }
  world.change()
  await world.advance(60_000)
  expect(lists).toBeGreaterThan(10)
  expect(lists).toBeLessThan(20)
  expect(await failuresOf(world)).toBe(lists)
  expect(world.warnings).toEqual([
    expect.objectContaining({ message: 'pods not listed: retrying' }),
  ])
  world.intercept = () => Promise.resolve()
  await world.advance(5000)
  expect(world.outdated()).toEqual([])
  await leader.stop()
})

test('a pod that cannot be annotated is retried, and does not delay the others', async () => {
  const { world, leader } = await startSettled()
  world.intercept = (call) =>
    isPatch(call) && call.path.endsWith('/b') ? Promise.reject(failure(409)) : Promise.resolve()
  world.change()
  await world.advance(EFFECTIVE_MS_MAX)
  expect(world.outdated()).toEqual(['b'])
  expect(await failuresOf(world)).toBeGreaterThan(1)
  world.intercept = () => Promise.resolve()
  await world.advance(5000)
  expect(world.outdated()).toEqual([])
  await leader.stop()
})

test('a deleted pod is not a failure', async () => {
  const { world, leader } = await startSettled()
  world.intercept = (call) => {
    const isPresent = world.store.get(PATHS.pods, 'b') !== undefined
    if (isPatch(call) && isPresent) world.store.remove(PATHS.pods, 'b')
    return Promise.resolve()
  }
  world.change()
  await world.advance(EFFECTIVE_MS_MAX)
  expect(world.outdated()).toEqual([])
  expect(await failuresOf(world)).toBe(0)
  await leader.stop()
})

test('an object that cannot be read delays the changes of the others by at most 10 s', async () => {
  const world = createListWorld(PODS)
  world.intercept = (call) =>
    call.path === PATHS.secrets ? Promise.reject(failure(403)) : Promise.resolve()
  const leader = world.lead()
  await world.advance(5000)
  world.change()
  await world.advance(5000 + EFFECTIVE_MS_MAX)
  const message = 'operator lists not read yet: retrying'
  expect(world.warnings).toContainEqual(expect.objectContaining({ message }))
  expect(world.outdated()).toEqual([])
  await leader.stop()
})

test('a deleted and recreated object is a change', async () => {
  const { world, leader } = await startSettled()
  const before = world.patchesOf('a').length
  world.store.remove(PATHS.configmaps, 'blocked')
  await world.advance(EFFECTIVE_MS_MAX)
  world.store.create(PATHS.configmaps, { metadata: { name: 'blocked' } })
  await world.advance(EFFECTIVE_MS_MAX)
  expect(world.patchesOf('a')).toHaveLength(before + 4)
  expect(world.outdated()).toEqual([])
  await leader.stop()
})

test('a new leader annotates the pods only if a list has changed without a leader', async () => {
  const { world, leader } = await startSettled()
  await leader.stop()
  const before = world.patchesOf('a').length
  const second = world.lead()
  await world.advance(FINAL_MS_MAX)
  expect(world.patchesOf('a')).toHaveLength(before)
  await second.stop()
  world.change()
  await world.advance(10_000)
  const third = world.lead()
  await world.advance(EFFECTIVE_MS_MAX)
  expect(world.outdated()).toEqual([])
  await third.stop()
})

test('a kubelet that is far behind has the current lists after the last annotation', async () => {
  const { world, leader } = await startSettled()
  world.kubeletLagMs = BEHIND_MS
  world.change()
  await world.advance(BEHIND_MS)
  expect(world.outdated()).toEqual(PODS)
  await world.advance(FINAL_MS_MAX - BEHIND_MS)
  expect(world.outdated()).toEqual([])
  await leader.stop()
})

test.each([200, 10_000])('a new leader %d ms after a change continues its stages', async (ms) => {
  const { world, leader } = await startSettled()
  const before = world.patchesOf('a').length
  world.kubeletLagMs = BEHIND_MS
  world.change()
  await world.advance(ms)
  await leader.stop()
  const second = world.lead()
  await world.advance(FINAL_MS_MAX)
  expect(world.outdated()).toEqual([])
  const [value, ...later] = world.patchesOf('a').slice(before)
  expect(later).toEqual([`${value}.confirmed`, `${value}.final`])
  await second.stop()
})

test('after a long fault of the API server, the lists are watched within 2 s', async () => {
  const world = createListWorld(PODS)
  world.intercept = () => Promise.reject(failure(503))
  const leader = world.lead()
  await world.advance(300_000)
  world.intercept = (call) => (isPodList(call) ? Promise.reject(failure(503)) : Promise.resolve())
  world.change()
  await world.advance(2000)
  world.intercept = () => Promise.resolve()
  expect(world.watches).toHaveLength(OBJECTS.length)
  await world.advance(5000 + EFFECTIVE_MS_MAX)
  expect(world.outdated()).toEqual([])
  await leader.stop()
})

test('a permanent failure is counted for each pod, and logged once until it changes', async () => {
  const { world, leader } = await startSettled()
  let status = 403
  let patches = 0
  world.intercept = (call) => {
    if (!isPatch(call) || call.path.endsWith('/a')) return Promise.resolve()
    patches++
    const message = `${call.path} is forbidden`
    return Promise.reject(new KubeError(message, { status, reason: 'Forbidden' }))
  }
  const expectWarnings = (statuses: readonly number[]) => {
    const message = 'pods not annotated: retrying'
    const warning = (one: number) =>
      expect.objectContaining({
        message,
        failures: 2,
        err: expect.objectContaining({ status: one }),
      })
    expect(world.warnings).toEqual(statuses.map(warning))
  }
  world.change()
  await world.advance(60_000)
  expect(patches).toBeGreaterThan(20)
  expect(await failuresOf(world)).toBe(patches)
  expectWarnings([403])
  status = 500
  await world.advance(60_000)
  expectWarnings([403, 500])
  const { intercept } = world
  world.intercept = () => Promise.resolve()
  await world.advance(5000)
  expect(world.outdated()).toEqual([])
  world.intercept = intercept
  world.change()
  await world.advance(5000)
  expectWarnings([403, 500, 500]) // the last one after a success
  await leader.stop()
})

test('a replica that lost the Lease annotates nothing, and counts no failure', async () => {
  const { world, leader } = await startSettled()
  const before = world.patchesOf('a').length
  leader.loseLease()
  world.change()
  await world.advance(10_000)
  expect(world.patchesOf('a')).toHaveLength(before)
  expect(await failuresOf(world)).toBe(0)
  await leader.stop()
})
