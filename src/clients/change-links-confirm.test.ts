// Changes of many links on an API that takes a second per change, or does not confirm some: the
// rate is reached, and each change that is not confirmed is retried by a list, or reported.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from '@jest/globals'
import {
  changeOptionsFor,
  codes,
  isSelected,
  matches,
  selected,
  startSelectable,
} from '../../test/kit/http/change-run.ts'
import type { ApiFault, LinksApi } from '../../test/kit/http/links-api.ts'
import { waitFor, withinDeadline } from '../../test/kit/wait-for.ts'
import { durationWithoutPauses } from '../../test/kit/watch-pauses.ts'
import { pause } from '../resilience/deadline.ts'
import { changeCodes, changeMatching } from './change-links.ts'

/** Five times what 200 changes take at 200 per second; with 8 in flight they would take 25 s. */
const FULL_RATE_MS_MAX = 10_000

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

async function startApi(fault?: ApiFault): Promise<LinksApi> {
  const api = await startSelectable(fault)
  cleanUps.push(api.close)
  return api
}

const listOf = (some: readonly string[]) => some.map((code, i) => ({ code, line: 2 * i + 1 }))
const changesIn = ({ requests }: LinksApi) => requests.filter((line) => line.startsWith('POST'))
const messageOf = async (run: Promise<void>) => (await run.catch(String)) ?? ''

/** Disables the links of `some`, but responds that the cache has not confirmed it. */
const unconfirmed =
  (links: () => LinksApi['links'], some: readonly string[]): ApiFault =>
  (request, res) => {
    const code = request.split('/')[3] ?? ''
    if (!request.startsWith('POST') || !some.includes(code)) return false
    Object.assign(links().get(code) ?? {}, { state: 'disabled' })
    res.writeHead(503).end('{"detail":"no cache"}')
    return true
  }

const delayed: ApiFault = async (request) => {
  if (request.startsWith('POST')) await sleep(1000)
  return false
}

test.each(['a scan', 'a list'])('changes of %s that take 1 s reach the rate', async (kind) => {
  const api = await startApi(delayed)
  const { options } = changeOptionsFor(api, { linksPerSecond: 200, pause })
  const some = selected.slice(0, 200)
  const isSome = (link: { short_code: string }) => some.includes(link.short_code)
  const tookMs = await durationWithoutPauses(() =>
    kind === 'a list'
      ? changeCodes(options, listOf(some))
      : changeMatching(options, { matches: isSome, after: undefined }),
  )
  expect(options.counts.changed).toBe(200)
  expect(tookMs).toBeLessThan(FULL_RATE_MS_MAX)
})

test.each([
  [1, 8],
  [40, 60],
  [1000, 256],
])('at %i links per second, at most %i changes are in flight', async (rate, parallelMax) => {
  let [arrived, lastMs] = [0, 0]
  const api = await startApi(async (request) => {
    if (!request.startsWith('POST')) return false
    arrived++
    lastMs = performance.now()
    // Waits until no other change arrives: on a busy machine, sending all of them takes long.
    const isLast = () => arrived >= parallelMax && performance.now() - lastMs >= 500
    await waitFor('the last change in flight', isLast)
    return false
  })
  const { options } = changeOptionsFor(api, { linksPerSecond: rate })
  const some = new Set(selected.slice(0, 1.5 * parallelMax))
  const isSome = (link: { short_code: string }) => some.has(link.short_code)
  await changeMatching(options, { matches: isSome, after: undefined })
  // One further request reads a page.
  expect(api.parallelMax() - parallelMax).toBeGreaterThanOrEqual(0)
  expect(api.parallelMax() - parallelMax).toBeLessThanOrEqual(1)
})

test.each([
  [1, 10],
  [70, 70],
  [9000, 500],
])('at %i links per second, pages have at most %i links', async (rate, links) => {
  const api = await startApi()
  const { options } = changeOptionsFor(api, { linksPerSecond: rate })
  await changeMatching(options, { matches: () => false, after: undefined })
  const limits = api.requests.map((line) => /limit=(\d+)$/.exec(line)?.[1])
  expect(new Set(limits)).toEqual(new Set([`${links}`]))
})

test('a list confirms even links that are already in the state', async () => {
  const api = await startApi()
  const some = selected.slice(0, 3)
  Object.assign(api.links.get(some[0] ?? '') ?? {}, { state: 'disabled' })
  const dry = changeOptionsFor(api, { isDryRun: true })
  await changeCodes(dry.options, listOf(some))
  expect(changesIn(api)).toEqual([])
  const { options, printedCodes } = changeOptionsFor(api)
  await changeCodes(options, listOf(some))
  for (const { counts } of [dry.options, options]) {
    expect(counts).toMatchObject({ changed: 2, already: 1 })
  }
  expect(changesIn(api)).toHaveLength(3)
  expect(printedCodes().sort()).toEqual(some.slice(1).sort())
})

test('a list continues after a code that fails, and reports its line', async () => {
  const failed = selected.filter((_, i) => i % 40 === 4)
  const api: LinksApi = await startApi(unconfirmed(() => api.links, failed))
  const { options, printedCodes } = changeOptionsFor(api, { linksPerSecond: 1 })
  const message = await messageOf(changeCodes(options, listOf(selected)))
  const shown = failed.map((code, i) => `${code} (line ${2 * (40 * i + 4) + 1})`)
  expect(message).toContain(`: link disable failed for 10 codes: ${shown.join(', ')}: POST `)
  expect(message).toMatch(/ 503: no cache; retry the command$/)
  const changed = selected.length - 10
  expect(options.counts).toMatchObject({ scanned: selected.length, changed, failed: 10 })
  expect(printedCodes()).toHaveLength(changed)
})

test('a list stops if 8 codes in a row fail, and reports those that failed before', async () => {
  const down = selected.slice(60)
  const api: LinksApi = await startApi(unconfirmed(() => api.links, down))
  const { options } = changeOptionsFor(api, { linksPerSecond: 1 })
  const message = await messageOf(changeCodes(options, listOf(selected)))
  expect(message).toMatch(
    /: link disable stopped after line \d+: .*no cache; failed: .*; continue with --after-line/,
  )
  expect(options.counts).toMatchObject({ changed: 60, failed: 7 })
  expect(message.match(/\(line \d+\)/g)).toHaveLength(7)
  const afterLine = Number(/--after-line=(\d+)$/.exec(message)?.[1])
  const lines = listOf(selected).filter(({ line }) => line <= afterLine)
  for (const { code } of lines.slice(60)) expect(message).toContain(`${code} (line `)
})

test('a scan that stops reports the changes that are not confirmed', async () => {
  const failed = selected.slice(10, 12)
  const api: LinksApi = await startApi(unconfirmed(() => api.links, failed))
  const { options } = changeOptionsFor(api, { linksPerSecond: 1 })
  expect(await messageOf(changeMatching(options, { matches, after: undefined }))).toMatch(
    new RegExp(
      `no cache; not confirmed: (${failed.join(', ')}|${failed.toReversed().join(', ')}) ` +
        `\\(run link disable for each\\); continue with --after=\\S+$`,
    ),
  )
})

test('at most 50 of the changes that are not confirmed are printed', async () => {
  const fail = unconfirmed(() => api.links, selected)
  const api: LinksApi = await startApi(async (...request) => {
    await sleep(50)
    return fail(...request)
  })
  const { options } = changeOptionsFor(api, { linksPerSecond: 50 })
  const message = await messageOf(changeMatching(options, { matches, after: undefined }))
  const [, shown = ''] = /not confirmed: (.*) and 25 more \(run/.exec(message) ?? []
  expect(shown.split(', ')).toHaveLength(50)
})

test('changes that hang are reported as not confirmed after a signal', async () => {
  const hung: string[] = []
  const api = await startApi((request) => {
    if (!request.startsWith('POST')) return false
    hung.push(request)
    return true
  })
  const stopping = new AbortController()
  const { options } = changeOptionsFor(api, { linksPerSecond: 1, signal: stopping.signal })
  const run = messageOf(changeMatching(options, { matches, after: undefined }))
  await waitFor('8 changes in flight', () => hung.length === 8)
  stopping.abort()
  const message = await withinDeadline('the stop', run)
  expect(message).toMatch(/a signal was received; not confirmed: .* \(run link disable for each\)/)
  expect(message).toContain(selected.slice(0, 8).join(', '))
}, 20_000)

test.each([undefined, codes[5]])('a failed first link after %s stops the run', async (after) => {
  const first = codes.slice(after === undefined ? 0 : 6).find(isSelected) ?? ''
  const api = await startApi(async (request, res) => {
    if (!request.startsWith(`POST /admin/links/${first}/`)) return false
    await sleep(50)
    res.writeHead(401).end('{"detail":"no token"}')
    return true
  })
  const { options } = changeOptionsFor(api, { linksPerSecond: 5 })
  const isFrom = (link: { short_code: string }) => link.short_code >= ''
  const run = changeMatching(options, { matches: isFrom, after })
  const message = await messageOf(run)
  expect(options.counts.changed).toBeGreaterThan(0)
  expect(message).toMatch(
    after === undefined
      ? /stopped after 0 links: .*: no token; restart from the first link$/
      : /stopped after \d links: .*: no token; continue with --after=\S+$/,
  )
})

test('the API is checked without a read of the store, until a signal', async () => {
  const api = await startApi(() => true)
  const stopping = new AbortController()
  const { options } = changeOptionsFor(api, { signal: stopping.signal })
  const run = messageOf(changeCodes(options, listOf(['a'])))
  await waitFor('the request', () => api.requests.length > 0)
  expect(api.requests).toEqual(['GET /admin/links?limit=0'])
  stopping.abort()
  expect(await withinDeadline('the stop', run)).toMatch(/a signal was received$/)
})
