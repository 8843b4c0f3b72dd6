// The owner of a pool: which owners are replaced, and what is written, on a fake of the session.
import { expect, test } from '@jest/globals'
import { StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import { ownPool } from './pool-owner.ts'
import type { Row } from './row.ts'

const request = { pool: 'p', owner: 'me', lowWater: 5, target: 9 }
const VALUES = ['me', 5n, 9n, 'p']
const OWN_FREE = /^UPDATE code_pools SET .* IF owner = null AND pool_number >= 0$/
const OWN_FROM = /^UPDATE code_pools SET .* IF owner = \?$/

const applied: Row = { '[applied]': true }
const ownedBy = (owner: string | null): Row => ({ '[applied]': false, owner })

/** Requests the pool from a session that returns these rows in turn. */
async function own(replaces: string | null, ...rows: readonly (Row | Error | undefined)[]) {
  const values: (readonly unknown[])[] = []
  const session: CassandraSession = {
    execute(kind, cql, given = []) {
      const row = rows[values.length]
      expect([kind, given.slice(0, 4)]).toEqual(['lwt', VALUES])
      expect(cql).toMatch(given.length === 4 ? OWN_FREE : OWN_FROM)
      values.push(given.slice(4))
      if (row instanceof Error) return Promise.reject(row)
      return Promise.resolve(row === undefined ? [] : [row])
    },
    warmUp: () => undefined,
  }
  return { isOwned: await ownPool(session, { ...request, replaces }), expected: values }
}

test.each([
  { name: 'its owner owns it', replaces: null, rows: [applied], isOwned: true, from: [['me']] },
  {
    ...{ name: 'a pool without an owner is owned', replaces: 'old' },
    ...{ rows: [ownedBy(null), applied], isOwned: true, from: [['me'], []] },
  },
  {
    ...{ name: 'the expected owner is replaced', replaces: 'old' },
    ...{ rows: [ownedBy('old'), applied], isOwned: true, from: [['me'], ['old']] },
  },
  {
    ...{ name: 'another owner is not replaced', replaces: 'old' },
    ...{ rows: [ownedBy('other')], isOwned: false, from: [['me']] },
  },
  {
    ...{ name: 'no owner is replaced unless one is named', replaces: null },
    ...{ rows: [ownedBy('other')], isOwned: false, from: [['me']] },
  },
  {
    ...{ name: 'a pool that does not exist is not owned', replaces: null },
    ...{ rows: [undefined, undefined], isOwned: false, from: [['me'], []] },
  },
])('$name', async ({ replaces, rows, isOwned, from }) => {
  expect(await own(replaces, ...rows)).toEqual({ isOwned, expected: from })
})

test.each([
  ['gets another owner', null, [ownedBy(null), ownedBy('other'), ownedBy('other')]],
  ['gets this owner', null, [ownedBy(null), ownedBy('me'), applied]],
  ['loses the expected owner', 'old', [ownedBy('old'), ownedBy(null), ownedBy('other')]],
])('if the pool %s meanwhile, the request is retried', async (_, replaces, rows) => {
  const { isOwned, expected } = await own(replaces, ...rows)
  expect(isOwned).toBe(rows.at(-1) === applied)
  expect(expected).toEqual([['me'], replaces === null ? [] : [replaces], ['me']])
})

test('an attempt of unknown outcome is retried', async () => {
  const unknown = new StoreError('no response', { outcome: 'unknown' })
  expect(await own(null, unknown, applied)).toEqual({ isOwned: true, expected: [['me'], ['me']] })
})
