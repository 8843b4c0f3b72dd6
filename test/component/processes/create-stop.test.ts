// The stop of the `create` role, in this process, while Cassandra does not respond to the read of
// the pools' levels: the role does not wait for it.
import { expect, jest, test } from '@jest/globals'
import type { Cassandra } from '../../../src/stores/cassandra/client.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

const scans: string[] = []
let isClosed = false
jest.unstable_mockModule('../../../src/stores/open-link-stores.ts', () => {
  const cassandra: Partial<Cassandra> = {
    ready: Promise.resolve('up'),
    isUp: () => true,
    warmUp: () => undefined,
    execute: (kind, cql) => {
      if (kind !== 'scan') return Promise.resolve([])
      scans.push(cql)
      return new Promise(() => undefined)
    },
  }
  return {
    linkStoreSettings: {},
    linkStoreDependentSettings: [],
    openLinkStores: (_: unknown, service: { onStop(stop: () => Promise<void>): void }) => {
      service.onStop(() => {
        isClosed = true
        return Promise.resolve()
      })
      return { cassandra, cache: {}, links: {} }
    },
  }
})
const { role } = await import('../../../src/roles/create.ts')

test('the role stops during a read of the levels, and then closes its stores', async () => {
  const env = { BASE_URL: 'http://localhost', PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'error' }
  const started = await role.start({ env, args: [], signal: new AbortController().signal })
  if (!('stop' in started)) throw new Error('the role did not start')
  await waitFor('the read of the levels', () => scans.length > 0)
  await withinDeadline('the stop', started.stop())
  expect(isClosed).toBe(true)
})
