// Deleted and evicted pods of each component under load: no request of the clients fails. The file
// reinstall.test.ts upgrades under load.
import { beforeAll, test } from '@jest/globals'
import { kubectl } from './cluster.ts'
import {
  edgeUrl,
  ensureRelease,
  evict,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  createLink,
  waitForDependencies,
  waitForIncrease,
  waitForRollout,
} from './release.ts'
import { creates, redirects, underLoad } from './upgrade.ts'

const TEST_MS_MAX = 8 * 60_000

let edge: string
let code: string

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await createLink(edge, 'https://example.com/rollout')
}, INSTALL_MS_MAX)

const plans = () => [redirects(edge, code), creates(edge)]

test.each(['edge', 'redirect', 'create', 'ratelimit'])(
  'a pod of %s is deleted, another evicted: no request fails',
  async (component) => {
    await underLoad(component, plans(), async () => {
      const [first = ''] = await podsOf(component)
      await kubectl('delete', 'pod', first, '--namespace', RELEASE)
      await waitForRollout(`deployment/${component}`)
      const second = (await podsOf(component)).find((name) => name !== first) ?? ''
      await evict(second)
      await kubectl('wait', `pod/${second}`, '--for=delete', '--timeout=120s', '-n', RELEASE)
      await waitForRollout(`deployment/${component}`)
    })
  },
  TEST_MS_MAX,
)

test.each(['cache', 'counters'])(
  'the Redis pod of %s is deleted: no request fails',
  async (component) => {
    await underLoad(component, plans(), async () => {
      await kubectl('delete', 'pod', `shop-curtail-${component}-0`, '--namespace', RELEASE)
      await waitForRollout(`statefulset/${component}`)
    })
    await waitForDependencies()
  },
  TEST_MS_MAX,
)

test(
  'the only Cassandra node is deleted: redirects continue, creates return 503 and recover',
  async () => {
    const tolerant = { ...creates(edge), expectedStatuses: [201, 503] }
    await underLoad('cassandra', [redirects(edge, code), tolerant], async () => {
      // The tests above emptied the cache, the only tier with the link while the store is down.
      await waitForIncrease('redirect', 'curtail_link_lookups_total{tier="cache",result="hit"}')
      await kubectl('delete', 'pod', 'shop-curtail-cassandra-0', '--namespace', RELEASE)
      await waitForRollout('statefulset/cassandra')
    })
    await waitForDependencies()
    await createLink(edge, 'https://example.com/recovered')
  },
  TEST_MS_MAX,
)
