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
  /** The object before the change. */
  readonly before: FakeObject | undefined
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
  /** What was last applied to an object, by its uid. */
  readonly #applied = new Map<string, Json>()

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
        creationTimestamp: new Date().toISOString().replace(/\.\d+/, ''),
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
    if (isSame(before, after)) return before
    const generation = before.metadata.generation + (same('spec') ? 0 : 1)
    return this.#put('MODIFIED', collection, {
      ...after,
      metadata: { ...after.metadata, generation, uid: before.metadata.uid },
    })
  }

  /**
   * Server-side apply; there is one manager. Removes the fields that it applied before and omits
   * now.
   */
  apply(collection: string, name: string, change: Json): FakeObject {
    const uid = this.get(collection, name)?.metadata.uid ?? ''
    const { metadata, ...fields } = change
    const complete = withRemovals(this.#applied.get(uid), fields) as Json
    const after = this.patch(collection, name, { metadata, ...complete })
    this.#applied.set(uid, fields)
    return after
  }

  /** Replaces an object except its metadata; creates a Lease that does not exist. */
  replace(collection: string, name: string, body: Json): FakeObject {
    const before = this.get(collection, name)
    if (before === undefined && collection.endsWith('/leases')) return this.create(collection, body)
    if (before === undefined) throw new FakeApiError(404, 'NotFound')
    const given = (body['metadata'] ?? {}) as { resourceVersion?: string }
    if (given.resourceVersion !== undefined) this.#check(before, given.resourceVersion)
    const after = { ...body, metadata: before.metadata }
    return isSame(before, after) ? before : this.#put('MODIFIED', collection, after)
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
    const before = objects.get(metadata.name)
    if (type === 'DELETED') objects.delete(metadata.name)
    else objects.set(metadata.name, object)
    const event = { type, collection, version, object, before }
    this.history.push(event)
    for (const listener of [...this.#listeners]) listener(event)
    return object
  }
}

/** Whether two versions of an object are equal except for the metadata that the server sets. */
function isSame(one: FakeObject, other: FakeObject): boolean {
  const fieldsOf = ({ metadata, ...fields }: FakeObject) => {
    const { labels, annotations } = metadata
    return Object.entries({ ...fields, labels, annotations }).filter(
      ([, value]) => value !== undefined,
    )
  }
  const render = (object: FakeObject) => JSON.stringify(fieldsOf(object).sort())
  return render(one) === render(other)
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

function isMap(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A JSON merge patch: `null` removes a field. */
function merge(before: unknown, change: unknown): unknown {
  if (!isMap(change)) return change
  const merged: Record<string, unknown> = isMap(before) ? { ...before } : {}
  for (const [key, value] of Object.entries(change)) {
    if (value === null) merged[key] = undefined
    else merged[key] = merge(merged[key], value)
  }
  return JSON.parse(JSON.stringify(merged)) as unknown
}

/** A merge patch of `change` that also removes the fields of `previous` that it omits. */
function withRemovals(previous: unknown, change: unknown): unknown {
  if (!isMap(previous) || !isMap(change)) return change
  const removals = Object.keys(previous).map((key) => [key, null] as const)
  const changes = Object.entries(change).map(
    ([key, value]) => [key, withRemovals(previous[key], value)] as const,
  )
  return Object.fromEntries([...removals, ...changes])
}
