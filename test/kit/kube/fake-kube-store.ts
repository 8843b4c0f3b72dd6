// The objects of the fake API server, their versions, and the history from which watches read.
// Without HTTP.
import { randomUUID } from 'node:crypto'

/** A stored object. */
export interface FakeObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly resourceVersion: string
    readonly generation: number
    readonly creationTimestamp: string
    readonly labels?: Record<string, string>
    readonly annotations?: Record<string, string>
    readonly [more: string]: unknown
  }
  readonly [more: string]: unknown
}

/** A change of an object in a collection. */
export interface FakeEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly collection: string
  readonly version: number
  readonly object: FakeObject
}

/** An error response, such as that of a rejected change. */
export class FakeApiError extends Error {
  readonly code: number
  readonly reason: string

  constructor(code: number, reason: string) {
    super(`${reason} (${code})`)
    this.code = code
    this.reason = reason
  }
}

type Json = Readonly<Record<string, unknown>>

/** Objects by collection; a collection is the path of its list. */
export class FakeKubeStore {
  version = 1
  /** Events up to this version are compacted. */
  compactedVersion = 0
  readonly history: FakeEvent[] = []
  readonly objects = new Map<string, Map<string, FakeObject>>()
  readonly #listeners = new Set<(event: FakeEvent) => void>()

  list(collection: string): FakeObject[] {
    return [...(this.objects.get(collection)?.values() ?? [])].sort((one, other) =>
      one.metadata.name < other.metadata.name ? -1 : 1,
    )
  }

  get(collection: string, name: string): FakeObject | undefined {
    return this.objects.get(collection)?.get(name)
  }

  /** Calls `listener` with every new event. Returns a function that removes it. */
  listen(listener: (event: FakeEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  create(collection: string, body: Json): FakeObject {
    const metadata = (body['metadata'] ?? {}) as Partial<FakeObject['metadata']>
    const name = metadata.name ?? ''
    if (this.get(collection, name) !== undefined) throw new FakeApiError(409, 'AlreadyExists')
    const object: FakeObject = {
      ...body,
      metadata: {
        ...metadata,
        name,
        namespace: namespaceOf(collection),
        uid: randomUUID(),
        generation: 1,
        creationTimestamp: new Date().toISOString(),
        managedFields: [{ manager: 'fake' }],
        resourceVersion: '',
      },
    }
    return this.#put('ADDED', collection, object)
  }

  /** Merges `change` into an object; a resourceVersion in it must be the current one. */
  patch(collection: string, name: string, change: Json): FakeObject {
    const before = this.get(collection, name)
    if (before === undefined) throw new FakeApiError(404, 'NotFound')
    const given = (change['metadata'] ?? {}) as { resourceVersion?: string }
    if (given.resourceVersion !== undefined) this.#check(before, given.resourceVersion)
    const after = merge(before, change) as FakeObject
    const same = (field: string) => JSON.stringify(before[field]) === JSON.stringify(after[field])
    const isNoChange = Object.keys(after).every((field) =>
      field === 'metadata' ? sameMetadata(before, after) : same(field),
    )
    if (isNoChange) return before
    const generation = before.metadata.generation + (same('spec') ? 0 : 1)
    return this.#put('MODIFIED', collection, {
      ...after,
      metadata: { ...after.metadata, generation, uid: before.metadata.uid },
    })
  }

  replace(collection: string, name: string, body: Json): FakeObject {
    const before = this.get(collection, name)
    if (before === undefined) throw new FakeApiError(404, 'NotFound')
    const given = (body['metadata'] ?? {}) as { resourceVersion?: string }
    if (given.resourceVersion !== undefined) this.#check(before, given.resourceVersion)
    return this.#put('MODIFIED', collection, { ...body, metadata: before.metadata })
  }

  remove(collection: string, name: string): FakeObject {
    const before = this.get(collection, name)
    if (before === undefined) throw new FakeApiError(404, 'NotFound')
    return this.#put('DELETED', collection, before)
  }

  /** Compacts the history: a watch from an older version gets 410 Expired. */
  compact(): void {
    this.compactedVersion = this.version
    this.history.length = 0
  }

  #check(before: FakeObject, version: string): void {
    if (before.metadata.resourceVersion !== version) throw new FakeApiError(409, 'Conflict')
  }

  #put(type: FakeEvent['type'], collection: string, given: FakeObject): FakeObject {
    const version = ++this.version
    const metadata = { ...given.metadata, resourceVersion: String(version) }
    const object = { ...given, metadata }
    const objects = this.objects.get(collection) ?? new Map<string, FakeObject>()
    this.objects.set(collection, objects)
    if (type === 'DELETED') objects.delete(metadata.name)
    else objects.set(metadata.name, object)
    const event = { type, collection, version, object }
    this.history.push(event)
    for (const listener of [...this.#listeners]) listener(event)
    return object
  }
}

function sameMetadata(before: FakeObject, after: FakeObject): boolean {
  const of = ({ metadata }: FakeObject) => JSON.stringify([metadata.labels, metadata.annotations])
  return of(before) === of(after)
}

/** Whether an object's labels have all of these `key=value` pairs. */
export function hasLabels(selector: string): (object: FakeObject) => boolean {
  return selects(selector, ({ metadata }, key) => metadata.labels?.[key])
}

/** Whether an object has all of these `path.to.field=value` pairs. */
export function hasFields(selector: string): (object: FakeObject) => boolean {
  return selects(selector, (object, path) =>
    path.split('.').reduce<unknown>((value, key) => (value as Json | undefined)?.[key], object),
  )
}

function selects(selector: string, valueOf: (object: FakeObject, key: string) => unknown) {
  const pairs = selector.split(',').filter((pair) => pair !== '')
  return (object: FakeObject) =>
    pairs.every((pair) => {
      const [key = '', value] = pair.split('=')
      return valueOf(object, key) === value
    })
}

function namespaceOf(collection: string): string {
  return /\/namespaces\/([^/]+)\//.exec(`${collection}/`)?.[1] ?? ''
}

function merge(before: unknown, change: unknown): unknown {
  const isMap = (value: unknown): value is Json =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isMap(before) || !isMap(change)) return change
  const merged: Record<string, unknown> = { ...before }
  for (const [key, value] of Object.entries(change)) {
    if (value === null) merged[key] = undefined
    else merged[key] = merge(before[key], value)
  }
  return JSON.parse(JSON.stringify(merged)) as unknown
}
