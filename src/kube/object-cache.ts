// The objects of one kind as they were last seen, and what changed between two sights, also between
// two that lie far apart: a deletion that nobody told of shows when all are listed again.
import { type KubeObject, keyOf, versionOf } from './objects.ts'

/** What became of an object. */
export interface Change<T> {
  readonly type: 'added' | 'changed' | 'deleted'
  /** As it is now, or was last. */
  readonly object: T
  /** As it was before a change. */
  readonly before?: T
}

/** Objects by their key. */
export interface ObjectCache<T extends KubeObject> {
  readonly get: (key: string) => T | undefined
  readonly list: () => readonly T[]
  /** Those that `indexBy` gave this word. */
  readonly listBy: (word: string) => readonly T[]
  readonly size: () => number
  /** All that there are now. */
  readonly replace: (objects: readonly T[]) => void
  readonly put: (object: T) => void
  readonly remove: (object: T) => void
}

/** A cache that tells each change once, after it holds it. */
export function createObjectCache<T extends KubeObject>(options: {
  readonly onChange: (change: Change<T>) => void
  readonly indexBy?: (object: T) => string | undefined
}): ObjectCache<T> {
  const { onChange, indexBy = () => undefined } = options
  const byKey = new Map<string, T>()
  const byWord = new Map<string, Map<string, T>>()
  const index = (key: string, object: T | undefined, before: T | undefined) => {
    const wordBefore = before && indexBy(before)
    if (wordBefore !== undefined) {
      const group = byWord.get(wordBefore)
      group?.delete(key)
      if (group?.size === 0) byWord.delete(wordBefore)
    }
    const word = object && indexBy(object)
    if (object === undefined || word === undefined) return
    const group = byWord.get(word) ?? new Map<string, T>()
    byWord.set(word, group.set(key, object))
  }
  const drop = (key: string) => {
    const before = byKey.get(key)
    if (before === undefined) return
    byKey.delete(key)
    index(key, undefined, before)
    onChange({ type: 'deleted', object: before })
  }
  const put = (object: T) => {
    const key = keyOf(object)
    const seen = byKey.get(key)
    if (seen !== undefined && versionOf(seen) === versionOf(object)) return // told twice
    // Deleted and made again between two sights: another object of the same name.
    if (seen !== undefined && seen.metadata.uid !== object.metadata.uid) drop(key)
    const before = byKey.get(key)
    byKey.set(key, object)
    index(key, object, before)
    if (before === undefined) onChange({ type: 'added', object })
    else onChange({ type: 'changed', object, before })
  }
  return {
    get: (key) => byKey.get(key),
    list: () => [...byKey.values()],
    listBy: (word) => [...(byWord.get(word)?.values() ?? [])],
    size: () => byKey.size,
    replace(objects) {
      const there = new Set(objects.map(keyOf))
      for (const key of [...byKey.keys()]) if (!there.has(key)) drop(key)
      for (const object of objects) put(object)
    },
    put,
    remove(object) {
      drop(keyOf(object))
    },
  }
}
