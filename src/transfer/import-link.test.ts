// Which link a row becomes; and that a retry never changes a link.
import { expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'
import {
  CREATED,
  createImporter,
  EXPIRES,
  identityOf,
  NOW_MS,
  sampleRow as row,
} from '../../test/kit/transfer/importer.ts'
import { isOffensive } from '../codes/offensive.ts'
import { isCode } from '../links/alias.ts'
import type { Link } from '../links/link.ts'
import { RejectedWriteError, StoreError } from '../resilience/store-error.ts'
import { candidatesOf, writerIdOf } from './derive-codes.ts'
import type { ImportResult } from './import-result.ts'
import type { LinkRow } from './link-row.ts'

test('a row is stored with its times, creator and derived writer; a retry finds it', async () => {
  const links = createMemoryLinkStore()
  const { run, invalidated } = createImporter(links)
  const given = row({ expires_at: EXPIRES, creator_id: '-9223372036854775808' })
  const created = { short_code: 'abc', result: 'created', code: 'abc', detail: null }
  expect(await run(given)).toEqual(created)
  const stored: Link = {
    code: 'abc',
    longUrl: 'https://example.com/',
    createdAtMs: Date.parse(CREATED),
    expiresAtMs: Date.parse(EXPIRES),
    creatorId: -(2n ** 63n),
    writerId: writerIdOf(identityOf(given)),
    disabledAtMs: null,
    deletedAtMs: null,
  }
  expect(await links.find('abc')).toEqual(stored)
  expect(await createImporter(links, NOW_MS + 1000).run(given)).toEqual({
    ...created,
    result: 'exists',
  })
  expect(await links.find('abc')).toEqual(stored)
  expect(invalidated).toEqual(['abc'])
})

test('a disabled or deleted row never redirects; a deleted one has no target', async () => {
  const links = createMemoryLinkStore()
  const { run } = createImporter(links)
  await run(row({ short_code: 'off', state: 'disabled' }))
  await run(row({ short_code: 'erased', state: 'deleted' }))
  const { long_url: longUrl } = row()
  expect(await links.find('off')).toMatchObject({ longUrl, disabledAtMs: NOW_MS })
  expect(await links.find('erased')).toMatchObject({ longUrl: null, deletedAtMs: NOW_MS })
})

test('a row without creation time is created now', async () => {
  const links = createMemoryLinkStore()
  await createImporter(links).run(row({ created_at: null }))
  expect((await links.find('abc'))?.createdAtMs).toBe(NOW_MS)
  const later = await createImporter(links, NOW_MS + 1).run(row({ created_at: null }))
  expect(later.result).toBe('exists')
})

const rejected: Record<string, [change: Partial<LinkRow>, expected: Partial<ImportResult>]> = {
  'another scheme': [{ long_url: 'ftp://a' }, { result: 'invalid', detail: /absolute/ as never }],
  'no target': [{ long_url: null }, { result: 'invalid' }],
  credentials: [{ long_url: 'https://a@b/' }, { result: 'invalid' }],
  'its own host': [{ long_url: 'https://own.test/a' }, { result: 'invalid' }],
  'an expiry in the past': [{ expires_at: CREATED }, { result: 'expired' }],
  'the state expired': [{ state: 'expired' }, { result: 'expired' }],
  'a deleted link whose code is not allowed': [
    { state: 'deleted', short_code: 'v1' },
    { result: 'invalid' },
  ],
}

test.each(Object.entries(rejected))('a row is not stored: %s', async (_, [change, { result }]) => {
  const links = createMemoryLinkStore()
  const { run, invalidated } = createImporter(links)
  const outcome = await run(row(change))
  expect(outcome).toMatchObject({ result, code: null, detail: expect.any(String) as unknown })
  expect([await links.find('abc'), invalidated]).toEqual([undefined, []])
})

test.each([
  ['at once', 0],
  ['after an attempt without a response, which may have stored it', 1],
])('a row whose value the store rejects is invalid: %s', async (_, unknowns) => {
  let inserts = 0
  const reject = () => {
    const isUnknown = inserts++ < unknowns
    if (isUnknown) return Promise.reject(new StoreError('no response', { outcome: 'unknown' }))
    return Promise.reject(new RejectedWriteError('expires_at must be earlier', undefined))
  }
  const links = { ...createMemoryLinkStore(), insertIfAbsent: reject }
  const { run, invalidated } = createImporter(links)
  const detail = 'expires_at must be earlier'
  const expected = { short_code: 'abc', result: 'invalid', code: null, detail }
  expect(await run(row({ expires_at: EXPIRES }))).toEqual(expected)
  expect([inserts, invalidated]).toEqual([unknowns + 1, ['abc']])
})

test.each([
  ['too long', 'longer-than-ten'],
  ['split by a slash', 'a/b'],
  ['reserved', 'Admin'],
  ['not ASCII', 'naïve'],
])('a code that is %s is replaced by one that depends only on the row', async (_, short_code) => {
  const links = createMemoryLinkStore()
  const given = row({ short_code })
  const first = await createImporter(links).run(given)
  const { code } = first
  expect(first).toMatchObject({ short_code, result: 'created' })
  expect(code).toMatch(/^[0-9A-Za-z]{8}$/)
  expect((await links.find(code ?? ''))?.longUrl).toBe(given.long_url)
  const second = await createImporter(links, NOW_MS + 1).run(given)
  expect(second).toEqual({ ...first, result: 'exists' })
  const other = await createImporter(links).run(row({ short_code, long_url: 'https://b.test/' }))
  expect(other).toMatchObject({ result: 'created' })
  expect(other.code).not.toBe(code)
})

test('replacements are allowed as codes, and never have the length of generated codes', () => {
  for (let i = 0; i < 2000; i++) {
    const codes = candidatesOf(identityOf(row({ short_code: `not allowed ${i}` })))
    expect(codes.length).toBeGreaterThan(5)
    expect(codes.filter((code) => !isCode(code) || isOffensive(code) || code.length === 7)).toEqual(
      [],
    )
  }
})

test('the derived values of a row never change', () => {
  expect(writerIdOf(identityOf(row()))).toBe('78be669b-dd44-8e57-b3ed-8b6a357020b6')
  expect(candidatesOf(identityOf(row({ short_code: 'v1' })))[0]).toBe('Nwk4QF3c')
})

test('a link with the same target but another expiry or state is a conflict', async () => {
  const links = createMemoryLinkStore()
  const link = sampleLink({ code: 'abc', longUrl: 'https://other.test/' })
  await links.insertIfAbsent(link)
  const { run } = createImporter(links)
  const long_url = 'https://other.test/'
  expect(await run(row({ long_url, expires_at: EXPIRES }))).toMatchObject({ result: 'conflict' })
  expect(await run(row({ long_url, state: 'disabled' }))).toMatchObject({ result: 'conflict' })
  expect(await links.find('abc')).toEqual(link)
})

test('a code with another link is a conflict, unless it has the same target', async () => {
  const links = createMemoryLinkStore()
  const link = sampleLink({ code: 'abc', longUrl: 'https://other.test/' })
  await links.insertIfAbsent(link)
  const { run, invalidated } = createImporter(links)
  expect(await run(row())).toMatchObject({ result: 'conflict', code: null })
  expect(await run(row({ long_url: 'https://other.test/' }))).toMatchObject({ result: 'exists' })
  const deleted = row({ state: 'deleted' })
  expect(await run(deleted)).toMatchObject({ result: 'conflict' })
  expect(await links.find('abc')).toEqual(link)
  await links.erase({ code: 'abc', deletedAtMs: 5 })
  expect(await run(deleted)).toMatchObject({ result: 'exists' })
  expect(await run(row())).toMatchObject({ result: 'conflict' })
  expect(invalidated).toEqual([])
})

test('if all codes that could replace one are taken, the row is a conflict', async () => {
  const links = createMemoryLinkStore()
  const given = row({ short_code: 'v1' })
  const [first = '', ...others] = candidatesOf(identityOf(given))
  for (const code of others) await links.insertIfAbsent(sampleLink({ code }))
  expect(await createImporter(links).run(given)).toMatchObject({ result: 'created', code: first })
  const all = createMemoryLinkStore()
  for (const code of [first, ...others]) await all.insertIfAbsent(sampleLink({ code }))
  expect(await createImporter(all).run(given)).toMatchObject({ result: 'conflict', code: null })
})

test('a retry changes no state that the operator has set since', async () => {
  const links = createMemoryLinkStore()
  const rows = [
    row({ short_code: 'enabled', state: 'disabled' }),
    row({ short_code: 'disabled' }),
    row({ short_code: 'deleted' }),
  ]
  for (const one of rows) await createImporter(links).run(one)
  await links.setDisabled({ code: 'enabled', disabledAtMs: null })
  await links.setDisabled({ code: 'disabled', disabledAtMs: 7 })
  await links.erase({ code: 'deleted', deletedAtMs: 8 })
  const before = await Promise.all(rows.map(({ short_code }) => links.find(short_code)))
  for (const one of rows) expect((await createImporter(links).run(one)).result).toBe('exists')
  expect(await Promise.all(rows.map(({ short_code }) => links.find(short_code)))).toEqual(before)
})

test('a row whose outcome stays unknown fails, and its caches are invalidated', async () => {
  const fail = () => Promise.reject(new StoreError('down', { outcome: 'unknown' }))
  const links = { ...createMemoryLinkStore(), insertIfAbsent: fail }
  const { run, invalidated } = createImporter(links)
  expect(await run(row())).toMatchObject({ result: 'failed', code: null })
  expect(invalidated).toEqual(['abc'])
})

test('a defect of the store fails the request', async () => {
  const fail = () => Promise.reject(new Error('a defect'))
  const { run } = createImporter({ ...createMemoryLinkStore(), find: fail })
  await expect(run(row())).rejects.toThrow('a defect')
})
