// A release that changes while it is used: pods of each kind deleted and evicted, an upgrade with a
// step of the schema, and the way back. Clients ask all the while, and see nothing of it.
import { beforeAll, expect, test } from '@jest/globals'
import { kubectl } from './cluster.ts'
import { type Asking, startLoad } from './constant-load.ts'
import {
  edgeUrl,
  ensureRelease,
  evict,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  rollBack,
  shorten,
  untilConnected,
  untilCounted,
  untilWhole,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 8 * 60_000
/** Below what the rules let one client do. */
const REDIRECT_EVERY_MS = 25
const CREATE_EVERY_MS = 1000

let edge: string
let code: string

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await shorten(edge, 'https://example.com/rollout')
}, INSTALL_MS_MAX)

const redirects = (): Asking => ({
  name: 'redirect',
  everyMs: REDIRECT_EVERY_MS,
  url: `${edge}/${code}`,
  right: [302],
})

const creates = (): Asking => ({
  name: 'create',
  everyMs: CREATE_EVERY_MS,
  url: `${edge}/v1/urls`,
  body: () => ({ long_url: `https://example.com/rollout/${Date.now()}` }),
  right: [201],
})

/** Does something under load; resolves to what the clients saw, which is printed too. */
async function underLoad(what: string, askings: readonly Asking[], act: () => Promise<void>) {
  const load = startLoad(askings)
  try {
    await act()
  } finally {
    const { counts, faults, faultCount } = await load.stop()
    process.stdout.write(`${what}: ${JSON.stringify(counts)}\n`)
    expect([what, faultCount, faults]).toEqual([what, 0, []])
  }
}

test.each(['edge', 'redirect', 'create', 'ratelimit'])(
  'a pod of %s is deleted, another evicted: no request fails',
  async (component) => {
    await underLoad(component, [redirects(), creates()], async () => {
      const [first = ''] = await podsOf(component)
      await kubectl('delete', 'pod', first, '--namespace', RELEASE)
      await untilWhole(`deployment/${component}`)
      const second = (await podsOf(component)).find((name) => name !== first) ?? ''
      await evict(second)
      await kubectl('wait', `pod/${second}`, '--for=delete', '--timeout=120s', '-n', RELEASE)
      await untilWhole(`deployment/${component}`)
    })
  },
  TEST_MS_MAX,
)

test.each(['cache', 'counters'])(
  'the Redis server of %s is deleted: no request fails',
  async (component) => {
    await underLoad(component, [redirects(), creates()], async () => {
      await kubectl('delete', 'pod', `shop-curtail-${component}-0`, '--namespace', RELEASE)
      await untilWhole(`statefulset/${component}`)
    })
    await untilConnected()
  },
  TEST_MS_MAX,
)

test(
  'the only node of Cassandra is deleted: redirects go on, creates say 503, and come back',
  async () => {
    const patient = { ...creates(), right: [201, 503] }
    await underLoad('cassandra', [redirects(), patient], async () => {
      // The cache was emptied above; it alone has the link while the store is away.
      await untilCounted('redirect', 'curtail_link_lookups_total{tier="cache",result="hit"}')
      await kubectl('delete', 'pod', 'shop-curtail-cassandra-0', '--namespace', RELEASE)
      await untilWhole('statefulset/cassandra')
    })
    await untilConnected()
    await shorten(edge, 'https://example.com/back')
  },
  TEST_MS_MAX,
)

test(
  'an upgrade with a step of the schema, and the way back: no request fails, no link is lost',
  async () => {
    await underLoad('upgrade', [redirects(), creates()], () =>
      upgradeRelease('--set', 'image.tag=next'),
    )
    const made = await shorten(edge, 'https://example.com/next')
    await underLoad('rollback', [redirects(), creates()], rollBack)
    for (const one of [code, made]) {
      const followed = await fetch(`${edge}/${one}`, { redirect: 'manual' })
      expect([one, followed.status]).toEqual([one, 302])
    }
  },
  3 * TEST_MS_MAX,
)
