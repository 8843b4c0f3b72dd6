// Scans of a table in which many codes have the same token and rows are partly expired: a real node
// has such rows only by chance. test/contract runs scans on a real node.
import { expect, test } from '@jest/globals'
import { sampleLink } from '../../../test/contract/sample-link.ts'
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
  expect(
    await scanAll(
      openTable([], () => false),
      3,
    ),
  ).toEqual([])
})

test.each([
  ['a link that has expired', { expiresAtMs: 1 }, 1],
  ['a deleted link, which must stay', { expiresAtMs: 1, longUrl: null, deletedAtMs: 2 }, 0],
])('the TTL of the record of %s', async (_, change, ttlSeconds) => {
  const values: (readonly unknown[])[] = []
  const session: CassandraSession = {
    execute(_kind, _cql, given = []) {
      values.push(given)
      return Promise.resolve([{ '[applied]': true }])
    },
    warmUp: () => undefined,
  }
  await createCassandraLinkStore(session).insertIfAbsent(sampleLink({ code: 'a', ...change }))
  expect(values.map((given) => given.at(-1))).toEqual([ttlSeconds])
})
