// A watcher misses no change during many random changes and faults of a fake API server.
import { describe, expect, test } from '@jest/globals'
import type { KubeWatcher } from '../../kit/kube/kube-watcher.ts'
import { setUpWatchedWidgets } from '../../kit/kube/watched-widgets.ts'
import { createRandom, newSeed } from '../../kit/random.ts'

const widgets = setUpWatchedWidgets()
const { create, change, remove, startSyncedWatcher, expectInSync } = widgets

describe('during many changes and faults', () => {
  const CHANGES = 10_000
  const PER_TURN = 20

  /** Applies random changes with random faults, which may overlap; returns the number of faults. */
  async function changeWithFaults(
    { watcher, seed }: { watcher: KubeWatcher; seed: number },
    faults: readonly (() => void | Promise<void>)[],
  ) {
    const random = createRandom(seed)
    let count = 0
    for (let written = 1; written <= CHANGES; written++) {
      const name = `w${random.int(200)}`
      if (!widgets.has(name)) create(name)
      else if (random.chance(0.2)) remove(name)
      else change(name, written)
      if (written % PER_TURN !== 0) continue
      await new Promise((resolve) => setImmediate(resolve))
      if (!random.chance(0.15)) continue
      count++
      await random.pick(faults)()
      if (random.chance(0.7)) await expectInSync(watcher)
    }
    await expectInSync(watcher)
    return count
  }
  const lossless = [
    ...Object.values(widgets.faults),
    async () => {
      await widgets.fake.stop()
      await widgets.fake.start()
    },
  ]

  test(`the watcher reports each of ${CHANGES} changes once and in order`, async () => {
    const seed = newSeed()
    const watcher = await startSyncedWatcher()
    const versions: string[] = []
    widgets.fake.store.listen(({ object }) => versions.push(object.metadata.resourceVersion))
    const faults = await changeWithFaults({ watcher, seed }, lossless)
    const observed = watcher.changes.filter(({ type }) => type !== 'deleted')
    const written = widgets.fake.store.history.filter(({ type }) => type !== 'DELETED')
    const missed = written.length - observed.length
    process.stdout.write(
      `seed ${seed}: ${versions.length} changes, ${faults} faults, ${missed} missed\n`,
    )
    expect(observed.map(({ object }) => object.metadata.resourceVersion)).toEqual(
      written.map(({ version }) => String(version)),
    )
    expect(watcher.changes).toHaveLength(versions.length)
    expect(await watcher.lists()).toBe(1)
  }, 60_000)

  test('the watcher reports the last state despite a compacted history and refreshes', async () => {
    const seed = newSeed()
    const watcher = await startSyncedWatcher()
    const faults = await changeWithFaults({ watcher, seed }, [
      ...lossless,
      () => {
        widgets.fake.expire()
      },
      () => {
        widgets.fake.store.compact()
      },
      () => watcher.reflector.refresh(),
    ])
    const mirror = new Map<string, string>()
    for (const { type, object } of watcher.changes) {
      const { name, resourceVersion } = object.metadata
      if (type === 'deleted') mirror.delete(name)
      else mirror.set(name, resourceVersion)
    }
    const observed = [...mirror].map(([name, version]) => `${name}@${version}`).sort()
    process.stdout.write(`seed ${seed}: ${faults} faults, ${await watcher.lists()} lists\n`)
    expect(observed).toEqual(widgets.existing())
  }, 60_000)
})
