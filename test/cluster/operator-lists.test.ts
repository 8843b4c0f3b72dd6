// Operator lists on a cluster: an operator changes them in a controller pod, and each create and
// redirect pod applies the change within 5 s, also while both stores hang.
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import { durationWithoutPauses } from '../kit/watch-pauses.ts'
import { kubectl, mustRun } from './cluster.ts'
import { suspendAll } from './faults.ts'
import {
  addressesOf,
  adminToken,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  RELEASE,
  runInController,
  waitForDependencies,
} from './release.ts'

const TEST_MS_MAX = 5 * 60_000
const REQUEST_MS_MAX = 5000
/** Every pod applies a change within this time. */
const EFFECTIVE_MS_MAX = 5000
const WAIT_MS_MAX = 120_000
const TARGET = 'https://a.evil.example/path'
const CREATOR = '9007199254740993'

let redirectPods: readonly string[]
let createPods: readonly string[]
let token: string

beforeAll(async () => {
  await ensureRelease()
  redirectPods = await addressesOf('redirect')
  createPods = await addressesOf('create')
  token = await adminToken()
}, INSTALL_MS_MAX)

const create = (pod: string, longUrl: string, key?: string) =>
  fetch(`http://${pod}:8080/v1/urls`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(key !== undefined && { 'X-API-Key': key }) },
    body: JSON.stringify({ long_url: longUrl }),
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  })
/** The status of a create. */
const createStatusOf = async (pod: string, longUrl: string) => {
  const response = await create(pod, longUrl)
  await response.arrayBuffer()
  return response.status
}
/** Creates a link; resolves to its code. */
async function createLink(pod: string, longUrl: string, key?: string): Promise<string> {
  const response = await create(pod, longUrl, key)
  const body = await response.text()
  if (response.status !== 201) throw new Error(`Cannot create a link: ${body}`)
  return new URL(response.headers.get('Location') ?? '').pathname.slice(1)
}
const redirectStatusOf = async (pod: string, code: string) => {
  const signal = AbortSignal.timeout(REQUEST_MS_MAX)
  const response = await fetch(`http://${pod}:8080/${code}`, { redirect: 'manual', signal })
  await response.arrayBuffer()
  return response.status
}
async function creatorOf(pod: string, code: string): Promise<string | null> {
  const headers = { Authorization: `Bearer ${token}` }
  const signal = AbortSignal.timeout(REQUEST_MS_MAX)
  const response = await fetch(`http://${pod}:9090/admin/links/${code}`, { headers, signal })
  return ((await response.json()) as { creator_id: string | null }).creator_id
}

/** Waits until `isApplied` is true for each pod; fails if that takes too long after the call. */
async function expectApplied(
  change: string,
  pods: readonly string[],
  isApplied: (pod: string) => Promise<boolean>,
): Promise<void> {
  const ms = await durationWithoutPauses(() =>
    Promise.all(
      pods.map((pod) => waitFor(`${change} on ${pod}`, () => isApplied(pod), WAIT_MS_MAX)),
    ),
  )
  process.stdout.write(`${change}: applied on each pod after ${(ms / 1000).toFixed(1)} s\n`)
  expect([change, ms < EFFECTIVE_MS_MAX]).toEqual([change, true])
}

const expectRedirects = (change: string, code: string, status: number) =>
  expectApplied(change, redirectPods, async (pod) => (await redirectStatusOf(pod, code)) === status)

const expectCreates = (change: string, status: number) =>
  expectApplied(change, createPods, async (pod) => (await createStatusOf(pod, TARGET)) === status)

test(
  'a blocked host is neither redirected nor created, until it is removed',
  async () => {
    const [pod = ''] = createPods
    const code = await createLink(pod, TARGET)
    for (const one of redirectPods) expect(await redirectStatusOf(one, code)).toBe(302)
    await runInController('block', 'add', 'evil.example')
    await expectRedirects('block add', code, 404)
    await expectCreates('block add', 422)
    expect(await runInController('block', 'list')).toContain('evil.example')
    await runInController('block', 'remove', 'evil.example')
    await expectRedirects('block remove', code, 302)
    await expectCreates('block remove', 201)
  },
  TEST_MS_MAX,
)

test(
  'a host is blocked while Cassandra and Redis hang',
  async () => {
    const [pod = ''] = createPods
    const code = await createLink(pod, TARGET)
    for (const one of redirectPods) expect(await redirectStatusOf(one, code)).toBe(302)
    const resume = await suspendAll([`${FULL_NAME}-cassandra-0`, `${FULL_NAME}-cache-0`])
    try {
      await runInController('block', 'add', 'evil.example')
      await expectRedirects('block add without stores', code, 404)
      await runInController('block', 'remove', 'evil.example')
      await expectRedirects('block remove without stores', code, 302)
    } finally {
      await resume()
    }
    await waitForDependencies()
  },
  TEST_MS_MAX,
)

test(
  'links that are created with an API key have its creator, until the key is revoked',
  async () => {
    const key = (await runInController('key', 'create', 'shop', `--creator=${CREATOR}`)).trim()
    const hasCreator = (creator: string | null) => async (pod: string) =>
      (await creatorOf(pod, await createLink(pod, 'https://example.com/key', key))) === creator
    await expectApplied('key create', createPods, hasCreator(CREATOR))
    await runInController('key', 'revoke', 'shop')
    await expectApplied('key revoke', createPods, hasCreator(null))
  },
  TEST_MS_MAX,
)

test('the changes are in the audit log of the controller pods', async () => {
  for (const change of [
    ['key', 'create', 'audited'],
    ['key', 'revoke', 'audited'],
    ['block', 'add', 'audited.example'],
    ['block', 'remove', 'audited.example'],
  ]) {
    await runInController(...change, '--operator=ann')
  }
  const component = 'app.kubernetes.io/component=controller'
  const actionsOfAnn = async () => {
    const log = await kubectl('logs', '-l', component, '--tail=-1', '--namespace', RELEASE)
    const lines = log.split('\n').filter((line) => line.includes('"operator action"'))
    const actions = lines.map((line) => JSON.parse(line) as { action: string; operator?: string })
    return actions.filter(({ operator }) => operator === 'ann').map(({ action }) => action)
  }
  const expected = ['key-create', 'key-revoke', 'block-add', 'block-remove']
  await waitFor(`the log to contain ${expected.join(', ')}`, async () => {
    const actions = await actionsOfAnn()
    return expected.every((action) => actions.includes(action))
  })
})

const plugin = fileURLToPath(new URL('../../bin/kubectl-curtail', import.meta.url))

/** Runs the plugin `kubectl curtail`; resolves to its stdout. */
const curtail = (args: readonly string[], input?: string) =>
  mustRun(plugin, ['--namespace', RELEASE, ...args], input)

test(
  'kubectl curtail runs each command in a pod that has its token and its lists',
  async () => {
    const link = JSON.parse(
      await curtail(['link', 'create', 'https://example.com/plugin', '--json']),
    ) as { short_url: string }
    const code = new URL(link.short_url).pathname.slice(1)
    const shown = JSON.parse(await curtail(['link', 'show', code, '--json'])) as object
    expect(shown).toMatchObject({ short_code: code, state: 'active' })
    expect(await curtail(['link', 'disable', '--from-file=-'], `${code}\n`)).toMatch(/^disabled 1,/)
    expect(await curtail(['pool', 'status', '--json'])).toContain('"pool":"default"')
    expect(await curtail(['block', 'import', '-'], 'plugin.example\n')).toMatch(/^1 entry added/)
    expect(await curtail(['block', 'remove', 'plugin.example'])).toBe('1 entry removed\n')
    expect(await curtail(['key', 'list'])).toMatch(/^NAME /)
    expect(await curtail(['limit', 'top'])).toMatch(/^(RULE |no hits)/)
    await expect(curtail(['link', 'show', 'a b'])).rejects.toThrow('exited with 2: curtail: CODE')
  },
  TEST_MS_MAX,
)
