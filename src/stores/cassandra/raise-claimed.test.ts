// The write that skips blocks of a pool: its counters and its condition.
import { expect, test } from '@jest/globals'
import { raiseClaimed } from './raise-claimed.ts'

test.each([
  ['minted stays if it is higher', 15, 20n],
  ['minted is raised with claimed', 25, 25n],
])('%s', async (_, to, minted) => {
  const calls: unknown[] = []
  const session = {
    execute(...call: readonly unknown[]) {
      calls.push(call)
      return Promise.resolve([])
    },
    warmUp: () => undefined,
  }
  await raiseClaimed(session, {
    ...{ pool: 'p', from: { claimed: 10, minted: 20 }, to, writerId: 'w' },
  })
  expect(calls).toEqual([
    [
      'lwt',
      expect.stringMatching(/^UPDATE code_pools SET/),
      [BigInt(to), minted, 'w', 'p', 10n, 20n],
    ],
  ])
})
