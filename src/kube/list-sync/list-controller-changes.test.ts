// The controller of operator lists with many changes on a simulated clock: constant changes, and
// random ones with faults and new leaders.
import { expect, test } from '@jest/globals'
import { createListWorld, OBJECTS, PATHS } from '../../../test/kit/kube/list-world.ts'
import { createRandom, newSeed } from '../../../test/kit/random.ts'
import { KubeError } from '../kube-error.ts'

const EFFECTIVE_MS_MAX = 2000

const failure = (status: number) => new KubeError('no', { status, reason: 'InternalError' })

test('under constant changes, every pod is annotated continually', async () => {
  const pods = Array.from({ length: 20 }, (_, at) => `pod-${String(at)}`)
  const world = createListWorld(pods)
  const leader = world.lead()
  await world.advance(EFFECTIVE_MS_MAX)
  const before = world.patchesOf('pod-0').length
  for (let change = 0; change < 100; change++) {
    world.change()
    await world.advance(50)
  }
  for (const pod of pods) expect(world.patchesOf(pod).length).toBeGreaterThan(before + 10)
  await leader.stop()
})

test('random faults, leaders and changes: after the last change every pod is current', async () => {
  const seed = newSeed()
  for (let round = 0; round < 30; round++) {
    const random = createRandom(seed + round)
    const world = createListWorld(['a', 'b', 'c'])
    const faulty = () => {
      if (random.chance(0.3)) return Promise.reject(failure(random.pick([429, 500, 503])))
      return Promise.resolve()
    }
    let leader = world.lead()
    const steps: Record<string, () => void | Promise<void>> = {
      change: () => {
        world.change(random.pick(OBJECTS))
      },
      fail: () => {
        world.intercept = faulty
      },
      recover: () => {
        world.intercept = () => Promise.resolve()
      },
      replace: async () => {
        await leader.stop()
        leader = world.lead()
      },
      start: () => {
        world.createPod(`pod-${String(world.nowMs())}`)
      },
      remove: () => {
        const [pod] = world.store.list(PATHS.pods)
        if (pod !== undefined) world.store.remove(PATHS.pods, pod.metadata.name)
      },
    }
    const done: string[] = []
    for (let step = 0; step < 20; step++) {
      const name = random.pick(Object.keys(steps))
      done.push(name)
      await steps[name]?.()
      await world.advance(1 + random.int(1500))
    }
    await steps['recover']?.()
    await world.advance(2000) // the longest back-off of a watch
    world.change()
    await world.advance(EFFECTIVE_MS_MAX)
    expect([seed + round, done, world.outdated()]).toEqual([seed + round, done, []])
    await leader.stop()
  }
}, 60_000)
