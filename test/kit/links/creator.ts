// The create use case over in-memory stores, for unit tests: the test controls its clocks.
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { StoreError } from '../../../src/resilience/store-error.ts'
import type { SuppliedCode } from '../../../src/create/code-supply.ts'
import { createLink, type CreateDeps, type CreateRequest } from '../../../src/create/create-link.ts'
import { createMemoryIntentStore } from '../stores/memory-intent-store.ts'
import { createMemoryLinkStore } from '../stores/memory-link-store.ts'

/** Far fewer pauses fit into a deadline: a create that exceeds this would never complete. */
export const PAUSES_MAX = 500

/** The create use case with `codes` in its pool; `change` overrides its dependencies. */
export function createUseCase(codes: string[] = [], change: Partial<CreateDeps> = {}) {
  const clock = { nowMs: 1_790_000_000_000, monotonicMs: 0 }
  const nowMs = () => clock.nowMs
  const links = createMemoryLinkStore()
  const intents = createMemoryIntentStore(nowMs)
  const stored: string[] = []
  const metrics = createMetrics()
  const pauses: number[] = []
  const take = (): Promise<SuppliedCode> => {
    const code = codes.shift()
    return Promise.resolve(code === undefined ? { kind: 'pool-empty' } : { kind: 'code', code })
  }
  const deps: CreateDeps = {
    links,
    intents,
    nowMs,
    monotonicMs: () => clock.monotonicMs,
    metrics,
    supply: { take },
    invalidateCaches(code) {
      stored.push(code)
      return undefined
    },
    pause(ms) {
      pauses.push(ms)
      if (pauses.length > PAUSES_MAX) throw new Error('the create never stops waiting')
      clock.nowMs += ms
      clock.monotonicMs += ms
      return Promise.resolve()
    },
    ...change,
  }
  const create = (request: Partial<CreateRequest> = {}) =>
    createLink(deps, {
      longUrl: 'https://example.com/',
      alias: undefined,
      ttlDays: undefined,
      creatorId: null,
      idempotencyKey: undefined,
      ...request,
    })
  return { clock, links, intents, stored, create, codes, metrics, pauses }
}

/** A call of a store that fails after it may have taken effect. */
export const unknown = () => Promise.reject(new StoreError('unavailable', { outcome: 'unknown' }))
