// Raises the counters of a pool in memory, while other processes change them.
import { expect, test } from '@jest/globals'
import type { Pool, RaiseChange } from '../codes/pool.ts'
import { StoreError } from '../resilience/store-error.ts'
import { raisePool, type RaisePoolDeps } from './raise-pool.ts'

/** A store of one pool; `onRaise` is called before each raise. */
function setUp(counters: Pick<Pool, 'minted' | 'claimed'>, onRaise = () => undefined as unknown) {
  const before: Pool = {
    ...{ pool: 'default', poolNumber: 0, writerId: null, secretFingerprint: 'f' },
    ...counters,
  }
  const store = { row: before, raises: [] as RaiseChange[] }
  const deps: RaisePoolDeps = {
    codes: {
      readPoolSerial: (pool) => Promise.resolve(pool === 'default' ? store.row : undefined),
    },
    async raiseClaimed(change) {
      store.raises.push(change)
      await onRaise()
      const { row } = store
      const { from, to, writerId } = change
      if (row.claimed !== from.claimed || row.minted !== from.minted) return
      store.row = { ...row, claimed: to, minted: Math.max(to, row.minted), writerId }
    },
  }
  const claimOne = () => (store.row = { ...store.row, claimed: store.row.claimed + 1 })
  return { store, deps, before, claimOne }
}

test('raises the counters, and returns them before and after', async () => {
  const { store, deps, before } = setUp({ minted: 8, claimed: 2 })
  const newWriterId = () => 'writer'
  const raised = await raisePool({ ...deps, newWriterId }, { pool: 'default', to: 10 })
  const after = { ...before, minted: 10, claimed: 10, writerId: 'writer' }
  expect(raised).toEqual({ before, after })
  expect(store.raises).toEqual([{ pool: 'default', from: before, to: 10, writerId: 'writer' }])
})

test.each([10, 11])('changes nothing if %d blocks are claimed and 10 required', async (claimed) => {
  const { store, deps, before } = setUp({ minted: 20, claimed })
  const raised = await raisePool(deps, { pool: 'default', to: 10 })
  expect(raised).toEqual({ before, after: before })
  expect(store.raises).toEqual([])
})

test('retries if another process changes the counters, each time with another id', async () => {
  let changes = 3
  const { store, deps, before, claimOne } = setUp({ minted: 8, claimed: 2 }, () => {
    if (changes-- > 0) claimOne()
  })
  const raised = await raisePool(deps, { pool: 'default', to: 10 })
  expect(raised.before).toEqual(before)
  expect(raised.after).toMatchObject({ minted: 10, claimed: 10 })
  expect(store.raises.map(({ from }) => from.claimed)).toEqual([2, 3, 4, 5])
  expect(new Set(store.raises.map(({ writerId }) => writerId)).size).toBe(4)
})

test('rejects after 100 attempts in which other processes changed the counters', async () => {
  const { store, deps, claimOne } = setUp({ minted: 1000, claimed: 0 }, () => claimOne())
  await expect(raisePool(deps, { pool: 'default', to: 1000 })).rejects.toThrow(
    'pool default not raised: its counters changed in each of 100 attempts',
  )
  expect(store.raises).toHaveLength(100)
})

test('rejects an unknown pool, and with the error of the store', async () => {
  const { deps } = setUp({ minted: 0, claimed: 0 })
  await expect(raisePool(deps, { pool: 'other', to: 1 })).rejects.toThrow('unknown pool other')
  const error = new StoreError('down', { outcome: 'unknown' })
  const failing = setUp({ minted: 0, claimed: 0 }, () => Promise.reject(error))
  await expect(raisePool(failing.deps, { pool: 'default', to: 1 })).rejects.toBe(error)
})
