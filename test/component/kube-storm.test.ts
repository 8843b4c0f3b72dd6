// A watcher in a storm of changes and faults at the API server: none is missed.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type FakeKubeApi, startFakeKubeApi } from '../parts/fake-kube-api.ts'
import {
  type KubeWatcher,
  startKubeWatcher,
  watchedWidgets,
  WIDGETS_PATH,
} from '../parts/kube-watcher.ts'
import { createRandom, newSeed } from './random.ts'
import { waitFor } from './wait-for.ts'

let fake: FakeKubeApi
let watcher: KubeWatcher | undefined

beforeEach(async () => {
  fake = await startFakeKubeApi()
})
afterEach(async () => {
  fake.refuse = () => undefined
  await watcher?.stop()
  watcher = undefined
  await fake.stop()
})

const { make, change, remove, there, agrees } = watchedWidgets(() => fake)
const started = async () => {
  watcher = startKubeWatcher(fake)
  const of = watcher
  await waitFor('the first list', () => of.reflector.hasSynced() && fake.watches === 1)
  return of
}

describe('under storm', () => {
  const CHANGES = 10_000
  const PER_TURN = 20

  /** Makes changes, with a fault now and then, often into the one before; gives how many faults. */
  async function storm(
    { of, seed }: { of: KubeWatcher; seed: number },
    faults: readonly (() => void | Promise<void>)[],
  ) {
    const random = createRandom(seed)
    let count = 0
    for (let made = 1; made <= CHANGES; made++) {
      const name = `w${random.int(200)}`
      const isThere = fake.store.get(WIDGETS_PATH, name) !== undefined
      if (!isThere) make(name)
      else if (random.chance(0.2)) remove(name)
      else change(name, made)
      if (made % PER_TURN !== 0) continue
      await new Promise((resolve) => setImmediate(resolve))
      if (!random.chance(0.15)) continue
      count++
      await random.pick(faults)()
      if (random.chance(0.7)) await agrees(of)
    }
    await agrees(of)
    return count
  }
  const lossless = [
    () => {
      fake.silence()
    },
    () => {
      fake.cut()
    },
    () => {
      fake.endWatches()
    },
    () => {
      fake.nextEvent = 'torn'
    },
    () => {
      fake.nextEvent = 'twice'
    },
    async () => {
      await fake.stop()
      await fake.start()
    },
  ]

  test(`of ${CHANGES} changes none is missed, each told once and in order`, async () => {
    const seed = newSeed()
    const of = await started()
    const versions: string[] = []
    fake.store.listen(({ object }) => versions.push(object.metadata.resourceVersion))
    const faults = await storm({ of, seed }, lossless)
    const told = of.changes.filter(({ type }) => type !== 'deleted')
    const made = fake.store.history.filter(({ type }) => type !== 'DELETED')
    const missed = made.length - told.length
    process.stdout.write(
      `seed ${seed}: ${versions.length} changes, ${faults} faults, ${missed} missed\n`,
    )
    expect(told.map(({ object }) => object.metadata.resourceVersion)).toEqual(
      made.map(({ version }) => String(version)),
    )
    expect(of.changes).toHaveLength(versions.length)
    expect(await of.lists()).toBe(1)
  }, 60_000)

  test(`with the history forgotten at times, the last state of all is told`, async () => {
    const seed = newSeed()
    const of = await started()
    const faults = await storm({ of, seed }, [
      ...lossless,
      () => {
        fake.expire()
      },
      () => {
        fake.store.forget()
      },
    ])
    const mirror = new Map<string, string>()
    for (const { type, object } of of.changes) {
      const { name, resourceVersion } = object.metadata
      if (type === 'deleted') mirror.delete(name)
      else mirror.set(name, resourceVersion)
    }
    const told = [...mirror].map(([name, version]) => `${name}@${version}`).sort()
    process.stdout.write(`seed ${seed}: ${faults} faults, ${await of.lists()} lists\n`)
    expect(told).toEqual(there())
  }, 60_000)
})
