// Changes of many links on an HTTP server that fails in each way: matching links are changed once,
// others never, and the error of a run that stops contains the option that continues it.
import { Writable } from 'node:stream'
import { afterEach, expect, jest, test } from '@jest/globals'
import {
  changeOptionsFor,
  codes,
  isSelected,
  LINKS,
  matches,
  selected,
  startSelectable,
} from '../../test/kit/http/change-run.ts'
import {
  type ApiFault,
  apiLink,
  type LinksApi,
  startLinksApi,
} from '../../test/kit/http/links-api.ts'
import { waitFor, withinDeadline } from '../../test/kit/wait-for.ts'
import { changeCodes, changeMatching } from './change-links.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  jest.restoreAllMocks()
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

async function startApi(fault?: ApiFault): Promise<LinksApi> {
  const api = await startSelectable(fault)
  cleanUps.push(api.close)
  return api
}

const listOf = (some: readonly string[]) => some.map((code, i) => ({ code, line: 2 * i + 1 }))
const changesIn = ({ requests }: LinksApi) => requests.filter((line) => line.startsWith('POST'))
const disabledIn = ({ links }: LinksApi) =>
  codes.filter((code) => links.get(code)?.state === 'disabled')

test('each matching link is disabled once', async () => {
  const api = await startApi()
  const { options, printedCodes } = changeOptionsFor(api)
  await changeMatching(options, { matches, after: undefined })
  expect(disabledIn(api)).toEqual(selected)
  expect(changesIn(api)).toHaveLength(selected.length)
  expect(options.counts).toEqual({
    ...{ scanned: LINKS, changed: selected.length },
    ...{ already: 0, skipped: 0, notFound: 0, failed: 0 },
  })
  expect(printedCodes().sort()).toEqual([...selected].sort())
  expect(new Set(api.operators)).toEqual(new Set(['ann']))
})

test('links in another state are counted, without a request', async () => {
  const api = await startApi()
  const states = ['disabled', 'deleted', 'expired'] as const
  states.forEach((state, i) => Object.assign(api.links.get(selected[i] ?? '') ?? {}, { state }))
  const { options } = changeOptionsFor(api)
  await changeMatching(options, { matches, after: undefined })
  expect(changesIn(api)).toHaveLength(selected.length - 3)
  expect(options.counts).toMatchObject({ changed: selected.length - 3, already: 1, skipped: 2 })
})

test('a dry run counts and prints the links, and changes nothing', async () => {
  const api = await startApi()
  const scan = changeOptionsFor(api, { isDryRun: true })
  await changeMatching(scan.options, { matches, after: undefined })
  const list = changeOptionsFor(api, { isDryRun: true })
  await changeCodes(list.options, listOf(selected))
  for (const { options, printedCodes } of [scan, list]) {
    expect(options.counts.changed).toBe(selected.length)
    expect(printedCodes().sort()).toEqual([...selected].sort())
  }
  expect([changesIn(api), disabledIn(api)]).toEqual([[], []])
})

test('a list enables only disabled links, and counts codes that have no link', async () => {
  const api = await startApi()
  for (const code of ['a', 'b']) api.links.set(code, apiLink(code, { state: 'disabled' }))
  api.links.set('d', apiLink('d', { state: 'deleted' }))
  const { options, printedCodes } = changeOptionsFor(api, { verb: 'enable' })
  await changeCodes(options, listOf(['a', 'none', codes[0] ?? '', 'd', 'b']))
  expect(options.counts).toEqual({
    scanned: 5,
    changed: 2,
    already: 1,
    skipped: 1,
    notFound: 1,
    failed: 0,
  })
  expect(printedCodes().sort()).toEqual(['a', 'b'])
  expect(api.links.get('d')?.state).toBe('deleted')
})

test('a link that is deleted or removed during the run is not reported as changed', async () => {
  const api: LinksApi = await startApi((request) => {
    if (request.includes(`/${selected[0] ?? ''}/`)) api.links.delete(selected[0] ?? '')
    if (request.includes(`/${selected[1] ?? ''}/`)) {
      Object.assign(api.links.get(selected[1] ?? '') ?? {}, { state: 'deleted' })
    }
    return false
  })
  const { options, printedCodes } = changeOptionsFor(api)
  await changeMatching(options, { matches, after: undefined })
  expect(options.counts).toMatchObject({ notFound: 1, skipped: 1, changed: selected.length - 2 })
  expect(printedCodes()).not.toContain(selected[1])
})

test('changes are evenly spread at the rate', async () => {
  const api = await startApi()
  jest.spyOn(performance, 'now').mockReturnValue(1000)
  const { options, pauses } = changeOptionsFor(api, { linksPerSecond: 2 })
  await changeCodes(options, listOf(selected.slice(0, 10)))
  expect(pauses).toHaveLength(9)
  // The simulated clock does not advance: each change waits for all earlier ones.
  expect(Math.max(...pauses)).toBe(4500)
})

test.each([
  ['a 503', (res: Parameters<ApiFault>[1]) => res.writeHead(503).end('{"detail":"no store"}')],
  ['a lost connection', (res: Parameters<ApiFault>[1]) => res.destroy()],
])('after %s, the change is retried, and the link reported once', async (_, fail) => {
  let failures = 0
  const api = await startApi((request, res) => {
    if (!request.startsWith('POST') || failures === 3) return false
    failures++
    fail(res)
    return true
  })
  const { options, retries, printedCodes } = changeOptionsFor(api)
  await changeMatching(options, { matches, after: undefined })
  expect(disabledIn(api)).toEqual(selected)
  expect(retries).toHaveLength(3)
  expect(printedCodes().sort()).toEqual([...selected].sort())
})

test('an outage stops the run, and the next run continues without omitting a link', async () => {
  let isUp = true
  const api: LinksApi = await startApi((request, res) => {
    if (request.startsWith('POST') && disabledIn(api).length >= 250) isUp = false
    if (!isUp) res.writeHead(503).end('{"detail":"no store"}')
    return !isUp
  })
  const first = changeOptionsFor(api, { linksPerSecond: 5 })
  const stopped = changeMatching(first.options, { matches, after: undefined })
  const message = /^link disable stopped after (\d+) links: .*503: no store; .* --after=(\S+)$/
  await expect(stopped).rejects.toThrow(message)
  const [, scanned, after = ''] = message.exec(await stopped.catch(String).then(textOf)) ?? []
  expect(codes[Number(scanned) - 1]).toBe(after)
  expect(first.options.counts.scanned).toBe(Number(scanned))
  const before = codes.slice(0, Number(scanned)).filter(isSelected)
  expect(disabledIn(api)).toEqual(expect.arrayContaining(before))
  expect(disabledIn(api).length - before.length).toBeLessThanOrEqual(8)
  const restarted = await restart(api)
  const second = changeOptionsFor(restarted)
  await changeMatching(second.options, { matches, after })
  expect(second.options.counts.scanned).toBe(LINKS - Number(scanned))
  expect(second.options.counts.already).toBeLessThanOrEqual(8)
  expect(disabledIn(restarted)).toEqual(selected)
})

const textOf = (error: unknown) => String(error).replace(/^OperatorError: /, '')

/** The same links on an API that does not fail. */
async function restart({ links }: LinksApi): Promise<LinksApi> {
  const api = await startLinksApi([...links.values()])
  cleanUps.push(api.close)
  return api
}

test('if the first link of a page fails, the run continues after the previous link', async () => {
  const failed = codes[500] ?? ''
  const api = await startApi((request, res) => {
    const isRejected = request === `POST /admin/links/${failed}/disable`
    // The links after it are changed before it fails.
    if (isRejected) setTimeout(() => res.writeHead(401).end('{"detail":"no token"}'), 50)
    return isRejected
  })
  const { options } = changeOptionsFor(api)
  await expect(changeMatching(options, { matches: () => true, after: undefined })).rejects.toThrow(
    new RegExp(`^link disable stopped after 500 links: .*401: .* --after=${codes[499] ?? ''}$`),
  )
})

test('an error that no retry corrects stops a list, and contains the line', async () => {
  const api = await startApi((request, res) => {
    const isRejected = request === `POST /admin/links/${selected[20] ?? ''}/disable`
    if (isRejected) res.writeHead(401).end('{"detail":"no token"}')
    return isRejected
  })
  const { options, retries } = changeOptionsFor(api)
  const message = /^link disable stopped after line (\d+): .*401: no token; .*--after-line=(\d+)$/
  const error = textOf(await changeCodes(options, listOf(selected)).catch(String))
  const [, line, afterLine] = message.exec(error) ?? []
  expect(line).toBe(afterLine)
  expect(Number(line)).toBeLessThanOrEqual(39) // code 21 is on line 41
  expect(Number(line)).toBeGreaterThanOrEqual(41 - 2 * 8)
  expect(disabledIn(api)).toEqual(expect.arrayContaining(selected.slice(0, options.counts.scanned)))
  expect(retries).toEqual([])
})

test('a server without an admin API is reported, not counted as missing links', async () => {
  const api = await startApi((_, res) => {
    const detail = 'The admin port serves nothing here, or the admin API is disabled'
    res.writeHead(404).end(JSON.stringify({ detail }))
    return true
  })
  const { options } = changeOptionsFor(api)
  await expect(changeCodes(options, listOf(['a', 'b']))).rejects.toThrow('serves nothing here')
  expect([options.counts.notFound, api.requests.length]).toEqual([0, 1])
})

test('an API that was never reached is reported immediately', async () => {
  const api = await startApi()
  api.close()
  const { options, retries } = changeOptionsFor(api)
  await expect(changeCodes(options, listOf(['a']))).rejects.toThrow(/^cannot reach the admin API/)
  await expect(changeMatching(options, { matches, after: undefined })).rejects.toThrow(/^cannot/)
  expect(retries).toEqual([])
})

test('a signal completes the changes in flight, and prints them', async () => {
  const held: (() => void)[] = []
  const api: LinksApi = await startApi((request, res) => {
    if (!request.startsWith('POST') || disabledIn(api).length < 100) return false
    held.push(() => {
      const link = api.links.get(request.split('/')[3] ?? '')
      if (link !== undefined) link.state = 'disabled'
      res.end(JSON.stringify(link))
    })
    return true
  })
  const stopping = new AbortController()
  const given = { signal: stopping.signal, linksPerSecond: 5 }
  const { options, printedCodes } = changeOptionsFor(api, given)
  const run = changeMatching(options, { matches, after: undefined })
  run.catch(() => undefined)
  await waitFor('8 changes in flight', () => held.length === 8)
  stopping.abort()
  for (const complete of held) complete()
  await expect(withinDeadline('the stop', run)).rejects.toThrow(
    /^link disable stopped after \d+ links: a signal was received; continue with --after=\S+$/,
  )
  expect(printedCodes().sort()).toEqual(disabledIn(api).sort())
  expect(changesIn(api)).toHaveLength(108)
})

test('an output that fails stops the run; the error contains where to continue', async () => {
  const api = await startApi()
  let lines = 0
  const output = new Writable({
    write(_chunk, _encoding, done) {
      done(++lines > 50 ? new Error('EPIPE') : null)
    },
  })
  output.on('error', () => undefined)
  const { options } = changeOptionsFor(api, { output, linksPerSecond: 5 })
  const run = changeMatching(options, { matches, after: undefined })
  await expect(run).rejects.toThrow(
    /^link disable stopped after \d+ links: cannot write the output \(.*\); .* --after=\d-\d+$/,
  )
  expect(disabledIn(api).length).toBeLessThanOrEqual(60)
})
