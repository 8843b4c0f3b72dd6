// The writers of the link: create processes and operators that run the real createLink(), the real
// operator changes and the real cache invalidation.
import { createLink } from '../../src/create/create-link.ts'
import {
  CONFIRM_DELAY_MS,
  createCacheInvalidator,
  type InvalidateDeps,
} from '../../src/admin/invalidate-link.ts'
import { createLinkOperations } from '../../src/admin/set-link-state.ts'
import { type CacheMutation, cacheOf, CODE, linkOf, metrics } from './cache-processes.ts'
import type { Row } from './cache-state.ts'
import type { Perform, Process } from './replay.ts'

/** A request that creates the link, or a retry of one. */
export function creationOf(name: string, mutation: CacheMutation): Process {
  return {
    name,
    async run(perform) {
      const cache = writersCache(perform, mutation)
      const { invalidator, drained } = invalidatorOf(perform, cache)
      const used = mutation.creation?.(invalidator, cache) ?? invalidator
      await create(perform, {
        before: () => (mutation.invalidatesFirst === true ? used.invalidate(CODE) : undefined),
        invalidateCaches: () =>
          mutation.invalidatesFirst === true ? undefined : used.invalidate(CODE),
      })
      await drained()
      return 'done'
    },
  }
}

/** One request to create the link. */
export async function create(
  perform: Perform,
  hooks: {
    before?: () => Promise<void> | undefined
    invalidateCaches: () => Promise<void> | undefined
  },
): Promise<void> {
  const unused = () => Promise.reject(new Error('unexpected call'))
  const outcome = await createLink(
    {
      links: {
        async insertIfAbsent() {
          await hooks.before?.()
          await perform('local', ['insert'])
          return 'w'
        },
        readSerial: unused,
      },
      intents: { insertIfAbsent: unused, readSerial: unused, move: unused },
      supply: { take: unused },
      nowMs: () => 0,
      monotonicMs: () => 0,
      metrics,
      invalidateCaches: hooks.invalidateCaches,
      newWriterId: () => 'w',
    },
    {
      longUrl: 'https://x.example/',
      alias: CODE,
      ttlDays: undefined,
      creatorId: null,
      idempotencyKey: undefined,
    },
  )
  if (outcome.kind === 'created') await perform('now', ['201'])
}

/** An operator that retries nothing. */
export function operatorOf(to: 'on' | 'off', mutation: CacheMutation): Process {
  return {
    name: `operator ${to}`,
    async run(perform) {
      const cache = writersCache(perform, mutation)
      const { invalidator, drained } = invalidatorOf(perform, cache)
      const used = mutation.operator?.(invalidator, { cache, to }) ?? invalidator
      await operate(perform, to, () => used.confirm(CODE))
      await drained()
      return 'done'
    },
  }
}

/** One change by an operator. */
export async function operate(
  perform: Perform,
  to: 'on' | 'off',
  onChanged: () => Promise<boolean> | boolean,
): Promise<void> {
  const unused = () => Promise.reject(new Error('unexpected call'))
  const operations = createLinkOperations({
    links: {
      setDisabled: async () => linkOf((await perform('local', ['change', to])) as Row),
      readSerial: unused,
      erase: unused,
    },
    nowMs: () => 0,
    onChanged,
  })
  const result = await (to === 'off' ? operations.disable(CODE) : operations.enable(CODE))
  if (result.kind === 'link') await perform('now', ['confirmed'])
}

function writersCache(perform: Perform, mutation: CacheMutation) {
  return cacheOf(perform, { mutation, clock: { nowMs: 0 }, newLease: () => 'none', receipt: 'now' })
}

/** An invalidator that retries without delay; `drained` resolves when its queue is empty. */
function invalidatorOf(perform: Perform, cache: InvalidateDeps['cache']) {
  let nowMs = 0
  let queued = 0
  const waiting: (() => void)[] = []
  const invalidator = createCacheInvalidator({
    cache,
    monotonicMs: () => nowMs,
    metrics: {
      linkCacheInvalidationsQueued: {
        set(count: unknown) {
          queued = Number(count)
          if (queued === 0) for (const go of waiting.splice(0)) go()
        },
      },
      linkCacheInvalidationsDropped: { inc: () => undefined },
    },
    onError(error) {
      throw error
    },
    async pause(ms) {
      if (ms === CONFIRM_DELAY_MS) await perform('local', ['pause'])
      else nowMs += CONFIRM_DELAY_MS / 2
    },
  })
  const drained = () =>
    queued === 0 ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve))
  return { invalidator, drained }
}
