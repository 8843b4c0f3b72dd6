// Scans of a table in which many codes have the same token and rows are partly expired: a real node
// has such rows only by chance. TTLs, rejected writes, and conditional changes that are retried.
import { describe, expect, test } from '@jest/globals'
import { sampleLink } from '../../../test/contract/sample-link.ts'
import { QUARANTINE_MS } from '../../links/expiry.ts'
import { RejectedWriteError, StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import { createCassandraLinkStore } from './link-store.ts'
import type { Row } from './row.ts'
import type { StatementKind } from './statement-kinds.ts'

/** The token of a code in these tests: a few tokens for all codes. */
const tokenOf = (code: string) => Number(code.slice(1)) % 3

/** A row; without a writer, it is partly expired. */
function rowOf(code: string, isExpiring: boolean): Row {
  const writer = { toString: () => 'd9428888-122b-11e1-b85c-61cd3cbb3210' }
  return { short_code: code, created_at: new Date(5), writer_id: isExpiring ? null : writer }
}

/** A session on a table with these codes, in the order of Cassandra. */
function openTable(codes: readonly string[], isExpiring: (code: string) => boolean) {
  const order = [...codes].sort(
    (one, other) => tokenOf(one) - tokenOf(other) || (one < other ? -1 : 1),
  )
  const kinds = new Set<StatementKind>()
  const select = (cql: string, [first, second]: readonly unknown[]) => {
    if (cql.endsWith('links LIMIT ?')) return order.slice(0, Number(first))
    const token = tokenOf(String(first))
    if (cql.endsWith('WHERE token(short_code) = token(?)'))
      return order.filter((code) => tokenOf(code) === token)
    expect(cql).toMatch(/WHERE token\(short_code\) > token\(\?\) LIMIT \?$/)
    return order.filter((code) => tokenOf(code) > token).slice(0, Number(second))
  }
  const session: CassandraSession = {
    execute(kind, cql, values = []) {
      kinds.add(kind)
      return Promise.resolve(select(cql, values).map((code) => rowOf(code, isExpiring(code))))
    },
    warmUp: () => undefined,
  }
  return { links: createCassandraLinkStore(session), order, kinds }
}

const codes = Array.from({ length: 20 }, (_, i) => `c${i}`)

async function scanAll(table: ReturnType<typeof openTable>, max: number, first?: string) {
  const found: string[] = []
  for (let after = first; ; after = found.at(-1)) {
    const page = await table.links.scan({ after, max })
    found.push(...page.map(({ code }) => code))
    if (new Set(found).size < found.length) throw new Error('a code was returned twice')
    if (page.length < max) return found
    expect(page).toHaveLength(max)
  }
}

test.each([1, 2, 3, 6, 7, 8, 19, 20, 21])(
  'codes with the same token are returned once each, in pages of %i',
  async (max) => {
    const table = openTable(codes, () => false)
    expect(await scanAll(table, max)).toEqual(table.order)
    expect([...table.kinds]).toEqual(['page-read'])
  },
)

test('a scan continues after a code that has the token of others but no record', async () => {
  const missing = 'c10'
  const table = openTable(
    codes.filter((code) => code !== missing),
    () => false,
  )
  const whole = openTable(codes, () => false).order
  const rest = whole.slice(whole.indexOf(missing) + 1)
  for (const max of [1, 2, 7, 20]) expect(await scanAll(table, max, missing)).toEqual(rest)
})

test.each([1, 2, 3, 6, 7, 20])(
  'rows that are partly expired do not end a scan in pages of %i',
  async (max) => {
    for (const step of [2, 3, 5]) {
      const isExpiring = (code: string) => Number(code.slice(1)) % step !== 0
      const table = openTable(codes, isExpiring)
      const expected = table.order.filter((code) => !isExpiring(code))
      expect(await scanAll(table, max)).toEqual(expected)
    }
  },
)

test('a table whose rows are all partly expired has no records', async () => {
  const table = openTable(codes, () => true)
  expect(await scanAll(table, 3)).toEqual([])
  const empty = openTable([], () => false)
  expect(await scanAll(empty, 3)).toEqual([])
})

const WRITER = 'd9428888-122b-11e1-b85c-61cd3cbb3210'
const NOW_MS = 1_790_000_000_000
const APPLIED = [{ '[applied]': true }]
const NOT_APPLIED = [{ '[applied]': false }]
const uuid = (id: string) => ({ toString: () => id })

/** A store whose session returns these results in turn, and the statements that it receives. */
function storeOf(...results: readonly (Error | readonly Row[])[]) {
  const calls: { readonly kind: StatementKind; readonly values: readonly unknown[] }[] = []
  const prepared: string[] = []
  const session: CassandraSession = {
    execute(kind, cql, values = []) {
      expect(cql.match(/\?/g)).toHaveLength(values.length)
      const result = results[calls.length] ?? []
      calls.push({ kind, values })
      return result instanceof Error ? Promise.reject(result) : Promise.resolve(result)
    },
    warmUp: (statements) => prepared.push(...statements),
  }
  const links = createCassandraLinkStore(session, {
    nowMs: () => NOW_MS,
    newChangeId: () => `change ${calls.length}`,
    pause: () => Promise.resolve(),
    monotonicMs: () => 0,
  })
  const kinds = () => calls.map(({ kind }) => kind)
  return { links, calls, kinds, prepared }
}

const fullLink = sampleLink({
  ...{ code: 'a', longUrl: 'https://a.example/', createdAtMs: 5, expiresAtMs: NOW_MS + 1 },
  ...{ creatorId: 7n, writerId: WRITER, disabledAtMs: 8, deletedAtMs: 9 },
})
const fullRow: Row = {
  ...{ short_code: 'a', long_url: 'https://a.example/', created_at: new Date(5) },
  ...{ expires_at: new Date(NOW_MS + 1), creator_id: 7n, writer_id: uuid(WRITER) },
  ...{ disabled_at: new Date(8), deleted_at: new Date(9) },
}

describe('insertIfAbsent()', () => {
  test('writes every value, and no value that the link does not have', async () => {
    const { links, calls, prepared } = storeOf(APPLIED, APPLIED)
    expect(await links.insertIfAbsent(fullLink)).toBe(WRITER)
    await links.insertIfAbsent(sampleLink({ code: 'b', longUrl: null, createdAtMs: 5 }))
    const values: unknown[] = ['a', 'https://a.example/', new Date(5), new Date(NOW_MS + 1)]
    values.push(7n, WRITER, new Date(8), new Date(9), 31 * 86_400 + 1)
    expect(calls[0]).toEqual({ kind: 'lwt', values })
    expect(calls[1]?.values).toEqual([
      ...['b', undefined, new Date(5), undefined, undefined, expect.any(String)],
      ...[undefined, undefined, 0],
    ])
    expect(prepared.map((cql) => /^\w+/.exec(cql)?.[0])).toEqual(['SELECT', 'INSERT'])
  })

  test.each([
    ['the writer of the existing row', [{ ...NOT_APPLIED[0], writer_id: uuid('w') }], 'w'],
    ['no writer if the row is partly expired', NOT_APPLIED, ''],
    ['no writer without a row', [], ''],
  ])('returns %s if it is not applied', async (_, rows, writer) => {
    expect(await storeOf(rows).links.insertIfAbsent(fullLink)).toBe(writer)
  })

  const MAX_MS = 630_720_000_000
  test.each([
    ['a link that does not expire', { expiresAtMs: null }, 0],
    ['a link, in whole seconds', { expiresAtMs: NOW_MS - QUARANTINE_MS + 1001 }, 2],
    ['a link that expires at this moment', { expiresAtMs: NOW_MS - QUARANTINE_MS }, 1],
    ['a link that has expired', { expiresAtMs: 1 }, 1],
    ['a deleted link, which must stay', { expiresAtMs: 1, longUrl: null, deletedAtMs: 2 }, 0],
    ['a link with the maximum', { expiresAtMs: NOW_MS + MAX_MS - QUARANTINE_MS }, 630_720_000],
    ['a link beyond it', { expiresAtMs: NOW_MS + MAX_MS - QUARANTINE_MS + 1 }, 0],
  ])('the TTL of the record of %s', async (_, change, ttlSeconds) => {
    const { links, calls } = storeOf(APPLIED)
    await links.insertIfAbsent(sampleLink({ code: 'a', ...change }))
    expect(calls[0]?.values.at(-1)).toBe(ttlSeconds)
  })

  const responseOf = (code: number, message: string) =>
    Object.assign(new Error(message), { name: 'ResponseError', code })
  const failed = (cause?: unknown) => new StoreError('failed', { outcome: 'not-done', cause })
  const TTL_MESSAGE = 'Request exceeds maximum supported expiration date of 2038-01-19T03:14:06'

  test('rejects a TTL that Cassandra rejects, with the allowed value', async () => {
    const error = failed(responseOf(0x2200, TTL_MESSAGE))
    const inserted = storeOf(error).links.insertIfAbsent(fullLink)
    await expect(inserted).rejects.toThrow(RejectedWriteError)
    await expect(inserted).rejects.toMatchObject({
      reason: expect.stringMatching(/^expires_at must be at most 2037-12-19: /),
      cause: error,
    })
  })

  test.each([
    ['another rejection', failed(responseOf(0x2200, 'unconfigured table links'))],
    ['an error that is no rejection', failed(responseOf(0x1100, TTL_MESSAGE))],
    ['an error without a cause', failed()],
    ['a defect', new Error('no', { cause: responseOf(0x2200, TTL_MESSAGE) })],
  ])('rethrows %s unchanged', async (_, error) => {
    await expect(storeOf(error).links.insertIfAbsent(fullLink)).rejects.toBe(error)
  })
})

test('each read has its kind, and returns every column', async () => {
  const { links, kinds } = storeOf([fullRow], [fullRow], [fullRow])
  expect(await links.find('a')).toEqual(fullLink)
  expect(await links.findOnReplica('a')).toEqual(fullLink)
  expect(await links.readSerial('a')).toEqual(fullLink)
  expect(kinds()).toEqual(['majority-read', 'replica-read', 'serial-read'])
})

test('columns without a value are null', async () => {
  const { short_code, created_at, writer_id } = fullRow
  const { links } = storeOf([{ short_code, created_at, writer_id }])
  const absent = { longUrl: null, expiresAtMs: null, creatorId: null, disabledAtMs: null }
  expect(await links.find('a')).toEqual({ ...fullLink, ...absent, deletedAtMs: null })
})

test.each([
  ['no row', []],
  ['a row without a writer', [{ ...fullRow, writer_id: null }]],
  ['a row without its creation time', [{ ...fullRow, created_at: null }]],
])('%s contains no link', async (_, rows) => {
  expect(await storeOf(rows).links.find('a')).toBeUndefined()
})

/** The row of an enabled link with an earlier change, as a change reads it. */
const state: Row = {
  ...{ ...fullRow, deleted_at: null, disabled_at: null },
  ...{ change_id: uuid('earlier'), ttl_seconds: 60 },
}
const enabled = { ...fullLink, disabledAtMs: null, deletedAtMs: null }
const disable = { code: 'a', disabledAtMs: 20 }
const erase = { code: 'a', deletedAtMs: 30 }

describe('setDisabled()', () => {
  test.each([
    { name: 'disables', before: null, wanted: 20, after: 20 },
    { name: 'keeps the time of a disabled link', before: 8, wanted: 20, after: 8 },
    { name: 'enables', before: 8, wanted: null, after: null },
    { name: 'writes also a state that the link has', before: null, wanted: null, after: null },
  ])('$name', async ({ before, wanted, after }) => {
    const timeOf = (ms: number | null) => (ms === null ? null : new Date(ms))
    const { links, calls } = storeOf([{ ...state, disabled_at: timeOf(before) }], APPLIED)
    const changed = await links.setDisabled({ code: 'a', disabledAtMs: wanted })
    expect(changed).toEqual({ ...enabled, disabledAtMs: after })
    const values = [60, timeOf(after), 'change 0', 'a', WRITER, timeOf(before), 'earlier']
    expect(calls).toEqual([
      { kind: 'serial-read', values: ['a'] },
      { kind: 'lwt', values },
    ])
  })

  test.each([
    [60, 60],
    [0, 1],
    [null, 0],
  ])('a TTL of %s is written as %i', async (ttl_seconds, ttlSeconds) => {
    const { links, calls } = storeOf([{ ...state, ttl_seconds }], APPLIED)
    await links.setDisabled(disable)
    expect(calls[1]?.values[0]).toBe(ttlSeconds)
  })

  test('writes nothing if its earlier attempt was applied', async () => {
    const after = { ...state, disabled_at: new Date(20), change_id: uuid('change 0') }
    const unknown = new StoreError('no response', { outcome: 'unknown' })
    const { links, kinds } = storeOf([state], unknown, [after])
    expect(await links.setDisabled(disable)).toEqual({ ...enabled, disabledAtMs: 20 })
    expect(kinds()).toEqual(['serial-read', 'lwt', 'serial-read'])
  })
})

test('erase() deletes the target, and writes every other value without a TTL', async () => {
  const before = { ...state, disabled_at: new Date(8), change_id: null }
  const { links, calls } = storeOf([before], APPLIED)
  const erased = { ...enabled, longUrl: null, disabledAtMs: 8, deletedAtMs: 30 }
  expect(await links.erase(erase)).toEqual(erased)
  const written = [new Date(30), 'change 0', WRITER, new Date(5), new Date(NOW_MS + 1), 7n]
  const values = [...written, new Date(8), 'a', WRITER, new Date(8), null]
  expect(calls[1]).toEqual({ kind: 'lwt', values })
})

describe.each(['setDisabled', 'erase'] as const)('%s()', (name) => {
  const change = (links: ReturnType<typeof storeOf>['links']) =>
    name === 'erase' ? links.erase(erase) : links.setDisabled(disable)

  test('reads the state before each attempt until one is applied', async () => {
    const later = { ...state, change_id: uuid('later') }
    const { links, calls, kinds } = storeOf([state], NOT_APPLIED, [later], APPLIED)
    expect(await change(links)).toMatchObject({ code: 'a' })
    expect(kinds()).toEqual(['serial-read', 'lwt', 'serial-read', 'lwt'])
    const writes = [calls[1]?.values ?? [], calls[3]?.values ?? []]
    expect(writes.map((values) => values.at(-1))).toEqual(['earlier', 'later'])
    expect(writes.every((values) => values.includes('change 0'))).toBe(true) // one id for all
  })

  test.each([
    ['an unknown link', [], undefined],
    ['a link that is erased', [{ ...fullRow, long_url: null }], { ...fullLink, longUrl: null }],
  ])('writes nothing for %s', async (_, rows, found) => {
    const { links, kinds } = storeOf(rows)
    expect(await change(links)).toEqual(found)
    expect(kinds()).toEqual(['serial-read'])
  })
})
