// Lists of a fake API server: pages, responses that are too long, and those that are rejected.
import { beforeEach, expect, test } from '@jest/globals'
import { type KubeApi, ResponseTooLong } from './api.ts'
import { KubeError } from './kube-error.ts'
import { listAll } from './list-all.ts'
import type { KubeObject } from './objects.ts'

type Call = Parameters<KubeApi['call']>[0]

const object = (at: number): KubeObject => ({
  metadata: { name: `w${at}`, namespace: 'n', uid: `w${at}`, resourceVersion: '1' },
})
const objects = (count: number) => Array.from({ length: count }, (_, at) => object(at))

let calls: Call[]
let cached: readonly KubeObject[] | undefined
let pages: number

beforeEach(() => {
  calls = []
  cached = undefined
  pages = 0
})

const list = (respond: (call: Call) => unknown, signal = new AbortController().signal) =>
  listAll<KubeObject>(
    {
      api: {
        async call(call) {
          calls.push(call)
          return Promise.resolve(respond(call))
        },
      },
      ...{ resource: { group: 'g', version: 'v1', plural: 'things' }, namespace: 'n' },
      trim: (given) => given,
      cache: { replace: (given) => (cached = given) },
      onPage: () => pages++,
    },
    signal,
  )
const queries = () => calls.map(({ query = {} }) => [query['limit'], query['continue']])

/** Serves pages of `all`; the token is the index of the next object. */
const serve =
  (all: readonly KubeObject[], isTooLong: (page: readonly KubeObject[]) => boolean) =>
  ({ query = {} }: Call) => {
    const at = Number(query['continue'] ?? 0)
    const end = at + Number(query['limit'])
    const items = all.slice(at, end)
    if (isTooLong(items)) throw new ResponseTooLong()
    const more = end < all.length && { continue: String(end) }
    return { items, metadata: { resourceVersion: '7', ...more } }
  }

test('all pages are read with the same limit, and then cached', async () => {
  const all = objects(1201)
  expect(await list(serve(all, () => false))).toBe('7')
  expect(queries()).toEqual([
    ['500', undefined],
    ['500', '500'],
    ['500', '1000'],
  ])
  expect([cached, pages, calls[0]?.msMax]).toEqual([all, 3, 60_000])
})

test('after a response that is too long, the list starts over with half the limit', async () => {
  const all = objects(40)
  expect(await list(serve(all, (page) => page.length > 20 && page.length < 40))).toBe('7')
  expect([queries(), cached]).toEqual([[['500', undefined]], all])
  calls = []
  expect(await list(serve(all, (page) => page.some(isLarge) && page.length > 1))).toBe('7')
  expect(cached).toEqual(all)
  const limits = calls.map(({ query }) => Number(query?.['limit']))
  expect([...new Set(limits)]).toEqual([500, 250, 125, 63, 32, 16, 8, 4, 2, 1])
  expect(calls.length).toBeLessThan(200)
})
const isLarge = ({ metadata }: KubeObject) => metadata.name === 'w35'

test('a single object that is too long fails the list', async () => {
  await expect(list(serve(objects(40), (page) => page.some(isLarge)))).rejects.toThrow('too long')
  expect([calls.at(-1)?.query?.['limit'], cached]).toEqual(['1', undefined])
})

test('an expired token fails the list, so that no list is read without a limit', async () => {
  const expired = new KubeError('expired', { status: 410, reason: 'Expired' })
  const respond = ({ query = {} }: Call) => {
    if (query['continue'] !== undefined) throw expired
    return { items: objects(1), metadata: { resourceVersion: '7', continue: 't' } }
  }
  await expect(list(respond)).rejects.toBe(expired)
  expect([queries(), cached]).toEqual([
    [
      ['500', undefined],
      ['500', 't'],
    ],
    undefined,
  ])
})

test('50,000 objects are accepted, one more is rejected', async () => {
  const respond = (count: number) => () => ({
    items: objects(count),
    metadata: { resourceVersion: '7' },
  })
  await list(respond(50_000))
  expect(cached).toHaveLength(50_000)
  cached = undefined
  await expect(list(respond(50_001))).rejects.toMatchObject({ reason: 'TooManyObjects' })
  expect(cached).toBeUndefined()
})

test.each([
  ['a list without a version', { items: [], metadata: {} }],
  ['a list without metadata', { items: [] }],
])('%s is rejected', async (_name, page) => {
  await expect(list(() => page)).rejects.toMatchObject({ reason: 'InvalidResponse' })
  expect(cached).toBeUndefined()
})

test('a list without items is empty', async () => {
  expect(await list(() => ({ items: null, metadata: { resourceVersion: '7' } }))).toBe('7')
  expect(cached).toEqual([])
})

test('an aborted list reads nothing', async () => {
  await expect(list(() => ({}), AbortSignal.abort())).rejects.toMatchObject({ reason: 'Aborted' })
  expect(calls).toEqual([])
})

test('a list of empty pages without end fails', async () => {
  const listed = list(() => ({ items: [], metadata: { resourceVersion: '7', continue: 'x' } }))
  await expect(listed).rejects.toThrow('a list has more than 100 empty pages')
  expect([calls.length, cached]).toEqual([101, undefined])
})
