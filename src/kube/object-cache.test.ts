// The changes that a cache reports, against a model: replaying them yields the cache's content.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createObjectCache } from './object-cache.ts'
import { type KubeObject, keyOf, versionOf } from './objects.ts'

interface Thing extends KubeObject {
  readonly value: string
}

const anyObject = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c'),
    uid: fc.constantFrom('1', '2'),
    resourceVersion: fc.constantFrom('1', '2', '3'),
  })
  .map((given): Thing => ({
    metadata: { ...given, namespace: 'n' },
    // As at an API server, the content of an object depends only on its version.
    value: given.resourceVersion === '1' ? 'x' : 'y',
  }))
const anyObjects = fc.uniqueArray(anyObject, { selector: keyOf, maxLength: 3 })
const step = fc.oneof(
  fc.record({ put: anyObject }),
  fc.record({ remove: anyObject }),
  fc.record({ replace: anyObjects }),
)

test('every change is reported once, and the index finds all objects', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const mirror = new Map<string, Thing>()
      const cache = createObjectCache<Thing>({
        indexBy: ({ value }) => value,
        onChange: ({ type, object, before }) => {
          const key = keyOf(object)
          const mirrored = mirror.get(key)
          if (type === 'deleted') {
            expect([mirrored, cache.get(key)]).toEqual([object, undefined])
            mirror.delete(key)
            return
          }
          expect([type, mirrored]).toEqual([before === undefined ? 'added' : 'changed', before])
          if (mirrored !== undefined) {
            expect(versionOf(mirrored)).not.toBe(versionOf(object))
            expect(mirrored.metadata.uid).toBe(object.metadata.uid)
          }
          expect(cache.get(key)).toBe(object)
          mirror.set(key, object)
        },
      })
      for (const given of steps) {
        const versions = () => cache.list().map(versionOf).sort()
        if ('put' in given) {
          cache.put(given.put)
          expect(versions()).toContain(versionOf(given.put))
        } else if ('remove' in given) {
          cache.remove(given.remove)
          expect(cache.get(keyOf(given.remove))).toBeUndefined()
        } else {
          cache.replace(given.replace)
          expect(versions()).toEqual(given.replace.map(versionOf).sort())
        }
        expect(new Map(cache.list().map((one) => [keyOf(one), one]))).toEqual(mirror)
        for (const value of ['x', 'y']) {
          const found = [...mirror.values()].filter((one) => one.value === value)
          expect(new Set(cache.listBy(value))).toEqual(new Set(found))
        }
        expect(cache.size()).toBe(mirror.size)
      }
    }),
  )
})
