// The check of redirects, combined with the lookup that keeps targets in memory. Whatever changes
// in the list or in the links, the check returns what the list in use returns.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { sampleLink } from '../../../test/contract/sample-link.ts'
import { createMemoryLinkCache } from '../../../test/kit/stores/memory-link-cache.ts'
import { parseBlockedEntry } from '../../links/blocked-entry.ts'
import { createTableBuilder } from '../../links/blocked-table-builder.ts'
import { createBlockedTargets } from '../../links/blocked-targets.ts'
import type { Link } from '../../links/link.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createLinkFinder } from '../find-link.ts'
import { createBlockedChecks, type VersionedList } from './blocked-checks.ts'

const SEED = 20_261_127
const hosts = ['a.example', 'b.example', 'www.a.example'] as const
const lines = ['a.example', 'b.example', 'b.example/0', 'a.example/1', 'www.a.example'] as const
const codes = ['code0', 'code1', 'code2'] as const

/** The list of these lines. */
function listOf(entries: readonly string[]) {
  const builder = createTableBuilder({ entries: 0, seed: SEED })
  for (const line of entries) {
    const entry = parseBlockedEntry(line)
    if (entry === undefined || 'fault' in entry) throw new Error(`${line} is no entry`)
    builder.add(entry)
  }
  return createBlockedTargets(builder.finish())
}

/** A pod with its lookup and its check; the test changes the links and the list. */
function setUp({ isOnlyWriter }: { readonly isOnlyWriter: boolean }) {
  const metrics = createMetrics()
  const links = new Map<string, Link>()
  const state = {
    ...{ nowMs: 1_790_000_000_000, isAvailable: true, loads: 0, comparisons: 0 },
    /** Delays the store's responses until it resolves. */
    delay: Promise.resolve(undefined),
  }
  let list: VersionedList | undefined
  const fail = () => Promise.reject(new StoreError('unavailable', { outcome: 'not-done' }))
  const nowMs = () => state.nowMs
  const shared = createMemoryLinkCache({ nowMs })
  const finder = createLinkFinder({
    links: {
      find(code) {
        const link = links.get(code)
        return state.isAvailable ? state.delay.then(() => link) : fail()
      },
    },
    cache: isOnlyWriter
      ? undefined
      : {
          lookUp: (code) => (state.isAvailable ? shared.lookUp(code) : fail()),
          fill: (entry) => (state.isAvailable ? shared.fill(entry) : fail()),
        },
    nowMs,
    metrics,
    isOnlyWriter,
    staleMs: 3_600_000,
  })
  const isBlocked = createBlockedChecks(() => list, metrics).redirectCheck()
  return {
    state,
    async setLink(code: string, longUrl: string | undefined) {
      if (longUrl === undefined) links.delete(code)
      else links.set(code, sampleLink({ code, longUrl }))
      await shared.invalidate(code)
      finder.invalidate(code)
    },
    /** Each load creates a version, even of an unchanged file; a list without entries has none. */
    load(entries: readonly string[]) {
      const { has } = listOf(entries)
      const count = (longUrl: string) => {
        state.comparisons++
        return has(longUrl)
      }
      list = entries.length === 0 ? undefined : { has: count, version: ++state.loads }
    },
    /** What a redirect's check and the list return; `undefined` if the code has no target. */
    async redirect(code: string) {
      try {
        const target = await finder.find(code, state.nowMs)
        if (target === undefined) return undefined
        state.comparisons = 0
        const checked = isBlocked(target)
        const { comparisons } = state
        return { checked, comparisons, listed: list?.has(target.longUrl) ?? false }
      } catch (error) {
        if (error instanceof StoreError) return undefined
        throw error
      }
    },
  }
}

type Pod = ReturnType<typeof setUp>

/** Redirects to a code twice before a change and once after it, while all lookups are in flight. */
async function redirectDuring(pod: Pod, code: string, change: () => Promise<void>) {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  pod.state.delay = promise
  const before = [pod.redirect(code), pod.redirect(code)]
  await change()
  const after = pod.redirect(code)
  resolve(undefined)
  return Promise.all([...before, after])
}

const code = fc.constantFrom(...codes)
const target = fc
  .tuple(fc.constantFrom(...hosts), fc.nat({ max: 1 }))
  .map(([host, path]) => `https://${host}/${path}`)
const step = fc.oneof(
  // Enough redirects to copy the link to the hot links.
  { weight: 6, arbitrary: fc.record({ redirects: fc.integer({ min: 1, max: 20 }), code }) },
  { weight: 3, arbitrary: fc.record({ load: fc.subarray([...lines]) }) },
  { weight: 3, arbitrary: fc.record({ code, during: target, load: fc.subarray([...lines]) }) },
  { weight: 2, arbitrary: fc.record({ code, longUrl: fc.option(target, { nil: undefined }) }) },
  { weight: 2, arbitrary: fc.record({ passMs: fc.constantFrom(500, 4000, 60_000, -60_000) }) },
  { weight: 1, arbitrary: fc.record({ isAvailable: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant('reload' as const) },
)

test('each check returns what the list in use returns, whatever was checked before', async () => {
  const seen = { blocked: 0, allowed: 0, during: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 20, maxLength: 60 }),
      fc.boolean(),
      async (steps, isOnlyWriter) => {
        const pod = setUp({ isOnlyWriter })
        for (const each of codes) await pod.setLink(each, `https://a.example/${each}`)
        let entries: readonly string[] = []
        const expectListed = (result: Awaited<ReturnType<Pod['redirect']>>) => {
          expect(result?.checked).toBe(result?.listed)
          if (result !== undefined) seen[result.checked ? 'blocked' : 'allowed']++
        }
        for (const action of steps) {
          if (action === 'reload') pod.load(entries)
          else if ('during' in action) {
            pod.state.nowMs += 700_000 // no longer fresh in memory
            const results = await redirectDuring(pod, action.code, async () => {
              await pod.setLink(action.code, action.during)
              pod.load((entries = action.load))
            })
            results.forEach(expectListed)
            if (results[0]?.checked !== results[2]?.checked) seen.during++
          } else if ('load' in action) pod.load((entries = action.load))
          else if ('passMs' in action) pod.state.nowMs += action.passMs
          else if ('isAvailable' in action) pod.state.isAvailable = action.isAvailable
          else if ('longUrl' in action) await pod.setLink(action.code, action.longUrl)
          else
            for (let i = 0; i < action.redirects; i++) {
              expectListed(await pod.redirect(action.code))
            }
        }
      },
    ),
    { numRuns: 100 },
  )
  expect(Math.min(seen.blocked, seen.allowed)).toBeGreaterThan(100)
  expect(seen.during).toBeGreaterThan(10)
})

test.each([true, false])(
  'a target in memory is compared once with each list (only writer: %s)',
  async (isOnlyWriter) => {
    const pod = setUp({ isOnlyWriter })
    const redirectAll = async (repetitions: number) => {
      const results = []
      for (let i = 0; i < repetitions; i++)
        for (const each of codes) results.push(await pod.redirect(each))
      return results
    }
    for (const each of codes) await pod.setLink(each, 'https://b.example/')
    await redirectAll(1)
    for (const entries of [['a.example'], ['a.example'], ['evil.example']]) {
      pod.load(entries)
      const compared = { checked: false, listed: false, comparisons: 1 }
      expect(await redirectAll(1)).toEqual(codes.map(() => compared))
      // Enough redirects to copy the links from the table to the hot links.
      for (const result of await redirectAll(20)) expect(result).toMatchObject({ comparisons: 0 })
    }
  },
)
