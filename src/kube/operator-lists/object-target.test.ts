// Lists in Secrets and ConfigMaps, on a fake API server.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type FakeKubeApi, startFakeKubeApi } from '../../../test/kit/kube/fake-kube-api.ts'
import { addLines, type ListTarget, UnknownOutcomeError } from '../../process/list-target.ts'
import { OperatorError } from '../../process/role.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createKubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { systemScheduler } from '../scheduler.ts'
import { createTransport, type Transport } from '../transport.ts'
import { createObjectTarget, type ObjectTargetOptions } from './object-target.ts'

const SECRETS = '/api/v1/namespaces/n/secrets'
const CONFIG_MAPS = '/api/v1/namespaces/n/configmaps'

let fake: FakeKubeApi
let transport: Transport

beforeEach(async () => {
  fake = await startFakeKubeApi()
  transport = createTransport({
    namespace: 'n',
    read: () => Promise.resolve({ server: fake.url, headers: {}, tls: {} }),
    invalidate: () => undefined,
  })
})
afterEach(async () => {
  transport.close()
  await fake.stop()
})

const targetOf = (kind: ObjectTargetOptions['kind'], ...names: string[]) =>
  createObjectTarget({
    api: createKubeApi({ transport, scheduler: systemScheduler, metrics: createMetrics() }),
    ...{ kind, namespace: 'n', names, dataKey: 'list.txt', setting: 'LISTS' },
    pause: () => Promise.resolve(),
  })
const createConfigMap = (name: string, data?: Record<string, string>) =>
  fake.store.create(CONFIG_MAPS, { metadata: { name }, ...(data && { data }) })
const dataOf = (name: string, collection = CONFIG_MAPS) =>
  fake.store.get(collection, name)?.['data'] as Record<string, string> | undefined
const add = (target: ListTarget, lines: readonly string[]) =>
  target.update((documents) => {
    const contents = addLines(documents, lines)
    if (contents === undefined) throw new OperatorError(target.whenFull)
    return { contents, result: undefined }
  })
const puts = () => fake.calls.filter(({ method }) => method === 'PUT')
const errorOf = async (result: Promise<unknown>) => {
  const error: unknown = await result.catch((cause: unknown) => cause)
  expect(error).toBeInstanceOf(OperatorError)
  return (error as OperatorError).message
}

test('a Secret contains the list in base64, and keeps its other values and labels', async () => {
  const metadata = { name: 'keys', labels: { 'curtail.dev/api-keys': 'true' } }
  const data = { other: 'b3RoZXI=', 'list.txt': Buffer.from('ü').toString('base64') }
  fake.store.create(SECRETS, { metadata, type: 'Opaque', data })
  const target = targetOf('Secret', 'keys')
  const document = { name: 'Secret n/keys', content: 'ü', bytesMax: 900 * 1024 - 8 }
  expect(await target.read()).toEqual([document])
  await add(target, ['a'])
  expect(dataOf('keys', SECRETS)).toEqual({
    other: 'b3RoZXI=',
    'list.txt': Buffer.from('ü\na\n').toString('base64'),
  })
  expect(fake.store.get(SECRETS, 'keys')).toMatchObject({ metadata, type: 'Opaque' })
})

test('data is added to an object without any, and unchanged objects are not written', async () => {
  createConfigMap('one')
  createConfigMap('two', { 'list.txt': 'b\n' })
  await add(targetOf('ConfigMap', 'one', 'two'), ['a'])
  expect([dataOf('one'), dataOf('two')]).toEqual([{ 'list.txt': 'a\n' }, { 'list.txt': 'b\n' }])
  expect(puts().map(({ path }) => path)).toEqual([`${CONFIG_MAPS}/one`])
})

test('many lines are distributed over the objects, each with at most 900 KiB of data', async () => {
  for (const name of ['one', 'two', 'three']) createConfigMap(name)
  fake.store.patch(CONFIG_MAPS, 'one', { data: { other: 'x'.repeat(500_000), 'list.txt': 'z\n' } })
  const lines = Array.from({ length: 60_000 }, (_, at) => `host-${at}.list.example`)
  await add(targetOf('ConfigMap', 'one', 'two', 'three'), lines)
  const written = ['one', 'two', 'three'].map((name) => dataOf(name)?.['list.txt'] ?? '')
  expect(written.join('')).toBe(`z\n${lines.join('\n')}\n`)
  const sizes = written.map((content) => Buffer.byteLength(content))
  expect((sizes[0] ?? 0) + 500_000).toBeGreaterThan(900 * 1024 - 40)
  expect((sizes[0] ?? 0) + 500_000).toBeLessThanOrEqual(900 * 1024)
  expect(sizes[1]).toBeLessThanOrEqual(900 * 1024)
  expect(sizes[2]).toBeGreaterThan(0)
})

test('if lines do not fit, the error names the setting, and nothing is written', async () => {
  createConfigMap('one', { other: 'x'.repeat(900 * 1024) })
  expect(await errorOf(add(targetOf('ConfigMap', 'one'), ['a']))).toBe(
    'an object has space for 921600 bytes: create another one, and add its name to LISTS',
  )
  expect(puts()).toEqual([])
})

test('after a conflict, a change is decided with the current contents', async () => {
  createConfigMap('one', { 'list.txt': 'a\n' })
  let conflicts = 0
  fake.reject = ({ method }) => {
    if (method === 'PUT' && conflicts < 5) {
      conflicts++
      fake.store.patch(CONFIG_MAPS, 'one', { data: { 'list.txt': `other ${conflicts}\n` } })
    }
    return undefined
  }
  await add(targetOf('ConfigMap', 'one'), ['b'])
  expect(dataOf('one')).toEqual({ 'list.txt': 'other 5\nb\n' })
  expect(puts().map(({ status }) => status)).toEqual([409, 409, 409, 409, 409, 200])
})

test('a conflict of a retried write with itself is no conflict', async () => {
  createConfigMap('one', { 'list.txt': 'a\n' })
  fake.reject = ({ method }) => {
    // The first write, whose response was lost.
    if (method === 'PUT') fake.store.patch(CONFIG_MAPS, 'one', { data: { 'list.txt': 'a\nb\n' } })
    return undefined
  }
  await add(targetOf('ConfigMap', 'one'), ['b'])
  expect(dataOf('one')).toEqual({ 'list.txt': 'a\nb\n' })
  expect(puts().map(({ status }) => status)).toEqual([409])
})

test('after five retries, a conflict is an error', async () => {
  createConfigMap('one')
  fake.reject = ({ method }) => (method === 'PUT' ? { status: 409, reason: 'Conflict' } : undefined)
  expect(await errorOf(add(targetOf('ConfigMap', 'one'), ['b']))).toBe(
    'Cannot write ConfigMaps in namespace n: other clients have changed the objects 6 times: ' +
      'retry the command',
  )
  expect(puts()).toHaveLength(6)
})

test('if an object is missing, the error contains the command that creates it', async () => {
  createConfigMap('one')
  const added = add(targetOf('ConfigMap', 'one', 'two'), ['a'])
  await expect(added).rejects.not.toBeInstanceOf(UnknownOutcomeError)
  expect(await errorOf(added)).toBe(
    'Cannot read ConfigMap n/two: it does not exist; create it with ' +
      '"kubectl create configmap two -n n", or change LISTS',
  )
  expect(await errorOf(targetOf('Secret', 'keys').read())).toContain(
    '"kubectl create secret generic keys -n n" and, for RateLimitPolicies, ' +
      '"kubectl label secret keys -n n curtail.dev/api-keys=true", or change LISTS',
  )
  expect(puts()).toEqual([])
})

test.each([
  [{ status: 403, reason: 'Forbidden' }, /requires the verbs get and update for secrets in name/],
  [{ status: 401, reason: 'Unauthorized' }, /rejects the credentials: Unauthorized/],
  [{ status: 500, reason: 'InternalError' }, /^Cannot read Secret n\/keys: InternalError/],
])('the response %j is an error that contains what is required', async (fault, expected) => {
  fake.reject = () => fault
  expect(await errorOf(targetOf('Secret', 'keys').read())).toMatch(expected)
})

test('an error after the first write names the objects that have changed', async () => {
  for (const name of ['one', 'two']) createConfigMap(name)
  fake.reject = ({ method, path }) =>
    method === 'PUT' && path.endsWith('/two') ? { status: 403, reason: 'Forbidden' } : undefined
  const lines = Array.from({ length: 60_000 }, (_, at) => `host-${at}.list.example`)
  const message = await errorOf(add(targetOf('ConfigMap', 'one', 'two'), lines))
  expect(message).toMatch(/^Cannot write ConfigMaps in namespace n: permission is missing: /)
  expect(message).toMatch(/; ConfigMap n\/one changed already$/)
})

test.each(['GET', 'decide'])(
  'an error of %s after a conflict names the objects that have changed',
  async (failing) => {
    for (const name of ['one', 'two']) createConfigMap(name)
    let isConflict = false
    fake.reject = ({ method, path }) => {
      if (isConflict && failing === 'GET') return { status: 500, reason: 'InternalError' }
      if (method !== 'PUT' || !path.endsWith('/two')) return undefined
      isConflict = true
      return { status: 409, reason: 'Conflict' }
    }
    const updated = targetOf('ConfigMap', 'one', 'two').update((documents) => {
      if (isConflict && failing === 'decide') throw new OperatorError('the list is full')
      return { contents: new Map(documents.map(({ name }) => [name, 'a\n'])), result: undefined }
    })
    const error: unknown = await updated.catch((cause: unknown) => cause)
    expect(error).toBeInstanceOf(UnknownOutcomeError)
    expect((error as Error).message).toMatch(
      failing === 'GET'
        ? /^Cannot read ConfigMap n\/one: InternalError.*; ConfigMap n\/one changed already$/
        : /^the list is full; ConfigMap n\/one changed already$/,
    )
    expect(dataOf('one')).toEqual({ 'list.txt': 'a\n' })
  },
)

test('an error of a write is reported even if the object has the new content', async () => {
  createConfigMap('one', { 'list.txt': 'a\n' })
  fake.reject = ({ method }) => {
    if (method !== 'PUT') return undefined
    fake.store.patch(CONFIG_MAPS, 'one', { data: { 'list.txt': 'a\nb\n' } })
    return { status: 500, reason: 'InternalError' }
  }
  expect(await errorOf(add(targetOf('ConfigMap', 'one'), ['b']))).toContain('InternalError')
})

test('a write that gets no response possibly took place', async () => {
  const lost = new KubeError('no response', { status: 0, reason: 'Unreachable' })
  const object = { metadata: { name: 'one', namespace: 'n', uid: 'u', resourceVersion: '1' } }
  const target = createObjectTarget({
    api: {
      call: ({ method }) => (method === 'PUT' ? Promise.reject(lost) : Promise.resolve(object)),
    },
    ...{ kind: 'ConfigMap', namespace: 'n', names: ['one'], dataKey: 'list.txt', setting: 'LISTS' },
  })
  await expect(add(target, ['a'])).rejects.toBeInstanceOf(UnknownOutcomeError)
})

test.each([
  [500, true],
  [503, true],
  [504, true],
  [422, false],
])('a write with the response %i possibly took place: %j', async (status, isUnknown) => {
  createConfigMap('one')
  fake.reject = ({ method }) => (method === 'PUT' ? { status, reason: 'Other' } : undefined)
  const added = add(targetOf('ConfigMap', 'one'), ['a'])
  const error: unknown = await added.catch((cause: unknown) => cause)
  expect(error).toBeInstanceOf(OperatorError)
  expect(error instanceof UnknownOutcomeError).toBe(isUnknown)
})

test('an unavailable API server is an error', async () => {
  await fake.stop()
  expect(await errorOf(targetOf('Secret', 'keys').read())).toMatch(
    /^Cannot read Secret n\/keys: the request to the API server failed/,
  )
})

test('a value that is not UTF-8 is an error, and is not written', async () => {
  fake.store.create(SECRETS, { metadata: { name: 'keys' }, data: { 'list.txt': '/w==' } })
  expect(await errorOf(add(targetOf('Secret', 'keys'), ['a']))).toContain('utf-8')
  expect(puts()).toEqual([])
})
