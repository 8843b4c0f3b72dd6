// Who changes the link: creators and operators as processes that run the real createLink(), the
// operator's real changes, and the real forgetting of what the cache holds.
import { createLink } from '../../src/create/create-link.ts'
import {
  CONFIRM_DELAY_MS,
  createCacheInvalidator,
  type InvalidateDeps,
} from '../../src/admin/invalidate-link.ts'
import { createLinkOperations } from '../../src/admin/set-link-state.ts'
import { type BentCache, cacheOf, CODE, linkOf, metrics } from './cache-processes.ts'
import type { Row } from './cache-state.ts'
import type { Ask, Process } from './replay.ts'

/** A request that creates the link, or repeats one that did. */
export function createUseCase(name: string, bent: BentCache): Process {
  return {
    name,
    async run(ask) {
      const cache = writersCache(ask, bent)
      const { forgetter, drained } = forgetterOf(ask, cache)
      const told = bent.creator?.(forgetter, cache) ?? forgetter
      await create(ask, {
        before: () => (bent.tellsFirst === true ? told.invalidate(CODE) : undefined),
        onStored: () => (bent.tellsFirst === true ? undefined : told.invalidate(CODE)),
      })
      await drained()
      return 'done'
    },
  }
}

/** One request to create the link. */
export async function create(
  ask: Ask,
  told: { before?: () => Promise<void> | undefined; onStored: () => Promise<void> | undefined },
): Promise<void> {
  const unused = () => Promise.reject(new Error('it is not asked'))
  const outcome = await createLink(
    {
      links: {
        async insertIfAbsent() {
          await told.before?.()
          await ask('local', ['insert'])
          return 'w'
        },
        readSerial: unused,
      },
      intents: { insertIfAbsent: unused, readSerial: unused, move: unused },
      supply: { take: unused },
      nowMs: () => 0,
      monotonicMs: () => 0,
      metrics,
      onStored: told.onStored,
      newWriterId: () => 'w',
    },
    { longUrl: 'https://x.example/', alias: CODE, ttlDays: undefined, idempotencyKey: undefined },
  )
  if (outcome.kind === 'created') await ask('now', ['201'])
}

/** An operator, who repeats nothing. */
export function operatorOf(to: 'on' | 'off', bent: BentCache): Process {
  return {
    name: `operator ${to}`,
    async run(ask) {
      const cache = writersCache(ask, bent)
      const { forgetter, drained } = forgetterOf(ask, cache)
      const told = bent.operator?.(forgetter, { cache, to }) ?? forgetter
      await operate(ask, to, () => told.confirm(CODE))
      await drained()
      return 'done'
    },
  }
}

/** One change by an operator. */
export async function operate(
  ask: Ask,
  to: 'on' | 'off',
  onChanged: () => Promise<boolean> | boolean,
): Promise<void> {
  const unused = () => Promise.reject(new Error('it is not asked'))
  const operations = createLinkOperations({
    links: {
      setDisabled: async () => linkOf((await ask('local', ['change', to])) as Row),
      readSerial: unused,
      erase: unused,
    },
    nowMs: () => 0,
    onChanged,
  })
  const answer = await (to === 'off' ? operations.disable(CODE) : operations.enable(CODE))
  if (answer.kind === 'link') await ask('now', ['confirmed'])
}

function writersCache(ask: Ask, bent: BentCache) {
  return cacheOf(ask, { bent, clock: { nowMs: 0 }, newLease: () => 'none', landing: 'now' })
}

/** A forgetter that repeats without delay, and whoever waits until it has nothing to repeat. */
function forgetterOf(ask: Ask, cache: InvalidateDeps['cache']) {
  let nowMs = 0
  let queued = 0
  const waiting: (() => void)[] = []
  const forgetter = createCacheInvalidator({
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
      if (ms === CONFIRM_DELAY_MS) await ask('local', ['pause'])
      else nowMs += CONFIRM_DELAY_MS / 2
    },
  })
  const drained = () =>
    queued === 0 ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve))
  return { forgetter, drained }
}
