// A watcher during many random changes and faults of the API server misses no change.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type FakeKubeApi, startFakeKubeApi } from '../../kit/kube/fake-kube-api.ts'
import {
  type KubeWatcher,
  startKubeWatcher,
  watchedWidgets,
  WIDGETS_PATH,
} from '../../kit/kube/kube-watcher.ts'
import { createRandom, newSeed } from '../../kit/random.ts'
import { waitFor } from '../../kit/wait-for.ts'

let fake: FakeKubeApi
let watcher: KubeWatcher | undefined

beforeEach(async () => {
  fake = await startFakeKubeApi()
})
afterEach(async () => {
  fake.reject = () => undefined
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

describe('many changes and faults', () => {
  const CHANGES = 10_000
  const PER_TURN = 20

  /** Applies random changes with random faults, which may overlap; returns the number of faults. */
  async function changeWithFaults(
    { of, seed }: { of: KubeWatcher; seed: number },
    faults: readonly (() => void | Promise<void>)[],
  ) {
    const random = createRandom(seed)
    let count = 0
    for (let written = 1; written <= CHANGES; written++) {
      const name = `w${random.int(200)}`
      const exists = fake.store.get(WIDGETS_PATH, name) !== undefined
      if (!exists) make(name)
      else if (random.chance(0.2)) remove(name)
      else change(name, written)
      if (written % PER_TURN !== 0) continue
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
      fake.dropConnections()
    },
    () => {
      fake.endWatches()
    },
    () => {
      fake.nextEvent = 'truncated'
    },
    () => {
      fake.nextEvent = 'twice'
    },
    async () => {
      await fake.stop()
      await fake.start()
    },
  ]

  test(`all of ${CHANGES} changes arrive once and in order`, async () => {
    const seed = newSeed()
    const of = await started()
    const versions: string[] = []
    fake.store.listen(({ object }) => versions.push(object.metadata.resourceVersion))
    const faults = await changeWithFaults({ of, seed }, lossless)
    const observed = of.changes.filter(({ type }) => type !== 'deleted')
    const written = fake.store.history.filter(({ type }) => type !== 'DELETED')
    const missed = written.length - observed.length
    process.stdout.write(
      `seed ${seed}: ${versions.length} changes, ${faults} faults, ${missed} missed\n`,
    )
    expect(observed.map(({ object }) => object.metadata.resourceVersion)).toEqual(
      written.map(({ version }) => String(version)),
    )
    expect(of.changes).toHaveLength(versions.length)
    expect(await of.lists()).toBe(1)
  }, 60_000)

  test('the last state arrives although the server sometimes loses its history', async () => {
    const seed = newSeed()
    const of = await started()
    const faults = await changeWithFaults({ of, seed }, [
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
    const observed = [...mirror].map(([name, version]) => `${name}@${version}`).sort()
    process.stdout.write(`seed ${seed}: ${faults} faults, ${await of.lists()} lists\n`)
    expect(observed).toEqual(there())
  }, 60_000)
})
