// Changes to a release under load: deleted and evicted pods of each component, an upgrade with a
// schema migration, and its rollback. No request of the clients fails.
import { beforeAll, expect, test } from '@jest/globals'
import { kubectl } from './cluster.ts'
import { type RequestPlan, startLoad } from './request-load.ts'
import {
  edgeUrl,
  ensureRelease,
  evict,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  rollBack,
  createLink,
  waitForDependencies,
  waitForIncrease,
  waitForRollout,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 8 * 60_000
/** Below the limits of one client. */
const REDIRECT_EVERY_MS = 25
const CREATE_EVERY_MS = 1000

let edge: string
let code: string

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await createLink(edge, 'https://example.com/rollout')
}, INSTALL_MS_MAX)

const redirects = (): RequestPlan => ({
  name: 'redirect',
  everyMs: REDIRECT_EVERY_MS,
  url: `${edge}/${code}`,
  expectedStatuses: [302],
})

const creates = (): RequestPlan => ({
  name: 'create',
  everyMs: CREATE_EVERY_MS,
  url: `${edge}/v1/urls`,
  body: () => ({ long_url: `https://example.com/rollout/${Date.now()}` }),
  expectedStatuses: [201],
})

/** Calls `act` under load, prints the outcomes and checks that no request failed. */
async function underLoad(what: string, plans: readonly RequestPlan[], act: () => Promise<void>) {
  const load = startLoad(plans)
  try {
    await act()
  } finally {
    const { counts, failures, failureCount } = await load.stop()
    process.stdout.write(`${what}: ${JSON.stringify(counts)}\n`)
    expect([what, failureCount, failures]).toEqual([what, 0, []])
  }
}

test.each(['edge', 'redirect', 'create', 'ratelimit'])(
  'a pod of %s is deleted, another evicted: no request fails',
  async (component) => {
    await underLoad(component, [redirects(), creates()], async () => {
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
    await underLoad(component, [redirects(), creates()], async () => {
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
    const tolerant = { ...creates(), expectedStatuses: [201, 503] }
    await underLoad('cassandra', [redirects(), tolerant], async () => {
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

test(
  'an upgrade with a schema migration and its rollback: no request fails, no link is lost',
  async () => {
    await underLoad('upgrade', [redirects(), creates()], () =>
      upgradeRelease('--set', 'image.tag=next'),
    )
    const created = await createLink(edge, 'https://example.com/next')
    await underLoad('rollback', [redirects(), creates()], rollBack)
    for (const one of [code, created]) {
      const response = await fetch(`${edge}/${one}`, { redirect: 'manual' })
      expect([one, response.status]).toEqual([one, 302])
    }
  },
  3 * TEST_MS_MAX,
)
