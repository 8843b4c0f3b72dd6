// A cache of the objects of one resource. It reports the changes between two observed states; a
// deletion that a watch missed is detected by the next list.
import { type KubeObject, keyOf, versionOf } from './objects.ts'

/** A change of one object. */
export interface Change<T> {
  readonly type: 'added' | 'changed' | 'deleted'
  /** The current state, or the last one before a deletion. */
  readonly object: T
  /** The state before a change. */
  readonly before?: T
}

/** Objects by their key. */
export interface ObjectCache<T extends KubeObject> {
  readonly get: (key: string) => T | undefined
  readonly list: () => readonly T[]
  /** Objects for which `indexBy` returns this value. */
  readonly listBy: (value: string) => readonly T[]
  readonly size: () => number
  /** Replaces the whole content. */
  readonly replace: (objects: readonly T[]) => void
  /** Stores or replaces one object. */
  readonly put: (object: T) => void
  readonly remove: (object: T) => void
}

/** Creates an empty cache that reports each change once, after applying it. */
export function createObjectCache<T extends KubeObject>(options: {
  readonly onChange: (change: Change<T>) => void
  readonly indexBy?: (object: T) => string | undefined
}): ObjectCache<T> {
  const { onChange, indexBy = () => undefined } = options
  const byKey = new Map<string, T>()
  const byValue = new Map<string, Map<string, T>>()
  const index = (key: string, object: T | undefined, before: T | undefined) => {
    const valueBefore = before && indexBy(before)
    if (valueBefore !== undefined) {
      const group = byValue.get(valueBefore)
      group?.delete(key)
      if (group?.size === 0) byValue.delete(valueBefore)
    }
    const value = object && indexBy(object)
    if (object === undefined || value === undefined) return
    const group = byValue.get(value) ?? new Map<string, T>()
    byValue.set(value, group.set(key, object))
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
    const cached = byKey.get(key)
    if (cached !== undefined && versionOf(cached) === versionOf(object)) return // duplicate event
    // Deleted and recreated between two observations: another object with the same name.
    if (cached !== undefined && cached.metadata.uid !== object.metadata.uid) drop(key)
    const before = byKey.get(key)
    byKey.set(key, object)
    index(key, object, before)
    if (before === undefined) onChange({ type: 'added', object })
    else onChange({ type: 'changed', object, before })
  }
  return {
    get: (key) => byKey.get(key),
    list: () => [...byKey.values()],
    listBy: (value) => [...(byValue.get(value)?.values() ?? [])],
    size: () => byKey.size,
    replace(objects) {
      const present = new Set(objects.map(keyOf))
      for (const key of [...byKey.keys()]) if (!present.has(key)) drop(key)
      for (const object of objects) put(object)
    },
    put,
    remove(object) {
      drop(keyOf(object))
    },
  }
}
