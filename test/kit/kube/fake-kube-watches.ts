// The open watches of the fake API server: the events and bookmarks that they receive, and the
// faults of their connections.
import type { ServerResponse } from 'node:http'
import { type FakeEvent, type FakeKubeStore, hasLabels } from './fake-kube-store.ts'

interface Watch {
  readonly res: ServerResponse
  readonly collection: string
  readonly selector: string
  readonly hasBookmarks: boolean
  isSilent: boolean
}

const EXPIRED = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' }

/** The open watches of a store. */
export class FakeKubeWatches {
  /** How the next event is delivered to each watch. */
  nextDelivery: 'complete' | 'truncated' | 'duplicate' = 'complete'
  readonly #store: FakeKubeStore
  readonly #watches = new Set<Watch>()

  constructor(store: FakeKubeStore) {
    this.#store = store
    store.listen((event) => {
      this.#send(event)
    })
  }

  get size(): number {
    return this.#watches.size
  }

  /** Opens a watch, and sends the events after its resourceVersion. */
  open(res: ServerResponse, collection: string, query: URLSearchParams): void {
    const from = Number(query.get('resourceVersion'))
    res.writeHead(200, { 'Content-Type': 'application/json' })
    res.flushHeaders()
    if (from < this.#store.compactedVersion) {
      res.end(`${JSON.stringify({ type: 'ERROR', object: EXPIRED })}\n`)
      return
    }
    const selector = query.get('labelSelector') ?? ''
    const hasBookmarks = query.get('allowWatchBookmarks') === 'true'
    const watch: Watch = { res, collection, selector, hasBookmarks, isSilent: false }
    for (const event of this.#store.history) {
      if (event.version > from) write(watch, event)
    }
    this.#watches.add(watch)
    const timer = setTimeout(
      () => {
        this.#watches.delete(watch)
        if (!watch.isSilent) res.end()
      },
      Number(query.get('timeoutSeconds')) * 1000,
    )
    if (!query.has('timeoutSeconds')) clearTimeout(timer)
    res.on('close', () => {
      clearTimeout(timer)
      this.#watches.delete(watch)
    })
  }

  /** Stops sending to the open watches, as on a half-open connection. */
  silence(): void {
    for (const watch of this.#watches) watch.isSilent = true
  }

  /** Closes every watch gracefully, like a server at its watch timeout. */
  closeAll(): void {
    for (const { res } of this.#watches) res.end()
    this.#watches.clear()
  }

  /** Reports 410 Expired to every watch. */
  expire(): void {
    for (const { res } of this.#watches) {
      res.end(`${JSON.stringify({ type: 'ERROR', object: EXPIRED })}\n`)
    }
    this.#watches.clear()
  }

  /** Sends a bookmark to every watch that requested bookmarks. */
  bookmark(): void {
    const object = { metadata: { resourceVersion: String(this.#store.version) } }
    for (const { res, hasBookmarks, isSilent } of this.#watches) {
      if (hasBookmarks && !isSilent) res.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`)
    }
  }

  #send(event: FakeEvent): void {
    const delivery = this.nextDelivery
    this.nextDelivery = 'complete'
    for (const watch of this.#watches) {
      if (watch.isSilent) continue
      if (delivery === 'truncated') {
        const line = JSON.stringify({ type: event.type, object: event.object })
        watch.res.write(line.slice(0, Math.floor(line.length / 2)))
        watch.res.socket?.end()
        watch.isSilent = true
        continue
      }
      write(watch, event)
      if (delivery === 'duplicate') write(watch, event)
    }
  }
}

/** Writes an event; a change of the labels adds an object to a watch or deletes it from it. */
function write({ res, collection, selector }: Watch, event: FakeEvent): void {
  if (event.collection !== collection) return
  const { object, before } = event
  const isSelected = hasLabels(selector)
  const matched = before !== undefined && isSelected(before)
  const matches = event.type !== 'DELETED' && isSelected(object)
  if (!matched && !matches) return
  const type = matched ? (matches ? 'MODIFIED' : 'DELETED') : 'ADDED'
  const { resourceVersion } = object.metadata
  const sent = matches ? object : { ...before, metadata: { ...before?.metadata, resourceVersion } }
  res.write(`${JSON.stringify({ type, object: sent })}\n`)
}
