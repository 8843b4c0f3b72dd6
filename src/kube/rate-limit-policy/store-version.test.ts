// Single writes of the last version: their results, defects, and specs that do not fit.
import { randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from '@jest/globals'
import { createFakeScheduler, type FakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { createLastVersion, type LastVersion, type LastVersionDeps } from './last-version.ts'

type Call = Parameters<KubeApi['call']>[0]
interface Data {
  readonly data: Readonly<Record<string, string | null>>
}

const KIBIBYTE = 1024
const CHECK_MS = 600_000
const { signal } = new AbortController()
const version = { version: 'a', resources: [Buffer.from('a')] }
const spec = { match: [], limits: [], mode: 'Enforce', onStoreError: 'Local' } as const
const specOf = (uid: string, bytes = 0) => ({
  ...{ uid, generation: 1 },
  spec: { ...spec, domain: randomBytes(bytes).toString('base64') },
})

let scheduler: FakeScheduler
let metrics: Metrics
let calls: Call[]
let respond: (call: Call) => Promise<unknown>
let enqueued: number[]
let settled: string[]
let warnings: unknown[]

beforeEach(() => {
  scheduler = createFakeScheduler()
  metrics = createMetrics()
  calls = []
  enqueued = []
  settled = []
  warnings = []
  respond = () => Promise.resolve({ metadata: { resourceVersion: '7' } })
})

const create = (given: Partial<LastVersionDeps> = {}): LastVersion =>
  createLastVersion({
    api: {
      call(call) {
        calls.push(call)
        return respond(call)
      },
    },
    ...{ secret: { namespace: 'n', name: 's' }, scheduler, random: () => 0, metrics },
    serialize: ({ resources }) => Promise.resolve(Buffer.concat(resources)),
    enqueue: (ms) => enqueued.push(ms),
    onSettled: (one) => settled.push(one.version),
    log: { info: () => undefined, warn: (fields: unknown) => warnings.push(fields) },
    ...given,
  })
const methods = () => calls.map(({ method }) => method)
const failures = async () => (await metrics.backgroundFailures.get()).values.at(0)?.value ?? 0

test('a write without a version does nothing', async () => {
  expect(await create().write(signal)).toEqual({})
  expect(calls).toEqual([])
})

test('a version replaces what was read from the Secret, and is checked in 10 minutes', async () => {
  const last = create()
  last.record(version, [])
  expect([enqueued, settled]).toEqual([[0], []])
  expect(await last.write(signal)).toEqual({ requeueAfterMs: CHECK_MS })
  expect([methods(), settled]).toEqual([['GET', 'PATCH'], ['a']])
  const [read, write] = calls
  expect(read?.path).toBe('/api/v1/namespaces/n/secrets/s')
  expect(write).toMatchObject({
    ...{ path: read?.path, contentType: 'application/merge-patch+json', signal },
    body: { metadata: { resourceVersion: '7', annotations: { 'curtail.dev/version': 'a' } } },
  })
  last.record(version, [])
  expect([enqueued, settled]).toEqual([[0], ['a', 'a']])
})

test('a version that is stored already is not written', async () => {
  const first = create()
  first.record(version, [specOf('p')])
  await first.write(signal)
  const { data } = calls[1]?.body as Data
  respond = () => Promise.resolve({ metadata: { resourceVersion: '8' }, data })
  const second = create()
  second.record(version, [])
  expect(await second.write(signal)).toEqual({ requeueAfterMs: CHECK_MS })
  expect([methods(), settled]).toEqual([
    ['GET', 'PATCH', 'GET'],
    ['a', 'a'],
  ])
  second.record(version, [specOf('q', 9)])
  await second.write(signal)
  expect(methods().slice(3)).toEqual(['GET', 'PATCH'])
})

test('a version with further specs is recorded, one with fewer is not', async () => {
  const [p, q] = [specOf('p'), specOf('q')]
  const last = create()
  last.record(version, [p])
  await last.write(signal)
  last.record(version, [])
  last.record(version, [p])
  expect(enqueued).toEqual([0])
  last.record(version, [p, q])
  expect(enqueued).toEqual([0, 0])
  last.record(version, [{ ...p, generation: 2 }])
  expect(enqueued).toEqual([0, 0, 0])
})

test('the next version waits in proportion to the size of the last one', async () => {
  const last = create()
  const large = { version: 'b', resources: [randomBytes(200 * KIBIBYTE)] }
  last.record(large, [])
  await last.write(signal)
  last.record(version, [])
  const { requeueAfterMs = 0 } = await last.write(signal)
  expect(requeueAfterMs).toBeGreaterThan(2000)
  expect(requeueAfterMs).toBeLessThan(2200)
  await scheduler.advance(requeueAfterMs)
  expect(await last.write(signal)).toEqual({ requeueAfterMs: CHECK_MS })
  expect(methods()).toEqual(['GET', 'PATCH', 'GET', 'PATCH'])
})

test('specs that do not fit are not stored, the version is', async () => {
  const last = create()
  const large = { version: 'b', resources: [randomBytes(600 * KIBIBYTE)] }
  last.record(large, [specOf('p', 600 * KIBIBYTE)])
  await last.write(signal)
  const { data } = calls[1]?.body as Data
  expect([data['version.pb.gz'], data['accepted.json.gz']]).toEqual([expect.any(String), null])
  expect(warnings).toEqual([{ secret: 's' }])
  last.record(version, [specOf('p')])
  await scheduler.advance(60_000)
  await last.write(signal)
  const next = calls[3]?.body as Data
  expect(next.data['accepted.json.gz']).toEqual(expect.any(String))
  expect(warnings).toHaveLength(1)
})

test('a version that does not fit is settled, and not retried', async () => {
  const last = create()
  last.record({ version: 'b', resources: [randomBytes(1025 * KIBIBYTE)] }, [])
  expect(await last.write(signal)).toEqual({})
  expect([calls, settled, await failures()]).toEqual([[], ['b'], 1])
})

test('a failure settles the newest version, and is retried with back-off', async () => {
  const last = create()
  last.record(version, [])
  respond = () => {
    last.record({ ...version, version: 'b' }, [])
    return Promise.reject(new KubeError('no', { status: 500, reason: 'InternalError' }))
  }
  expect(await last.write(signal)).toEqual({ requeueAfterMs: 1000 })
  expect([settled, await failures(), warnings.length]).toEqual([['b'], 1, 1])
  expect(await last.write(signal)).toEqual({ requeueAfterMs: 1000 })
  expect(calls).toHaveLength(1)
  await scheduler.advance(1000)
  expect(await last.write(signal)).toEqual({ requeueAfterMs: 2000 })
  expect([await failures(), warnings.length]).toEqual([2, 1])
})

test('a conflict is retried soon, and is no failure', async () => {
  const last = create()
  last.record(version, [])
  const error = new KubeError('changed', { status: 409, reason: 'Conflict' })
  respond = ({ method }) =>
    method === 'GET' ? Promise.resolve({ metadata: {} }) : Promise.reject(error)
  expect(await last.write(signal)).toEqual({ requeueAfterMs: 50 })
  expect(await last.write(signal)).toEqual({ requeueAfterMs: 100 })
  expect([settled, await failures(), warnings]).toEqual([[], 0, []])
})

test('a defect and an abort are thrown', async () => {
  const serialize = () => Promise.reject(new Error('defect'))
  const defective = create({ serialize })
  defective.record(version, [])
  await expect(defective.write(signal)).rejects.toThrow('defect')
  const last = create()
  last.record(version, [])
  respond = () => Promise.reject(new KubeError('aborted', { status: 0, reason: 'Unreachable' }))
  await expect(last.write(AbortSignal.abort())).rejects.toThrow('aborted')
  expect([settled, await failures()]).toEqual([[], 0])
})
