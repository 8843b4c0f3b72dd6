// The accepted specs that a leader stores for the next one.
import { gzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import {
  QUIET_LOG,
  SECRET,
  startVersionWorld,
  versionOf,
} from '../../../test/kit/kube/version-world.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { untilAborted } from '../scheduler.ts'
import { encodeAccepted, type UnreportedSpec } from './accepted-specs.ts'
import { readAccepted } from './last-version.ts'

const SPECS: readonly UnreportedSpec[] = [
  {
    uid: 'p',
    generation: 3,
    spec: {
      ...{ domain: 'd', mode: 'Audit', onStoreError: 'Deny', replaces: ['l'] },
      match: [
        { key: 'a', value: 'x*' },
        { key: 'k', secretSelector: { matchLabels: { tier: 'gold' } } },
      ],
      limits: [
        { name: 'l', algorithm: 'TokenBucket', requests: 1, window: '1s', burst: 9 },
        { name: 'm', algorithm: 'FixedWindow', unlimited: true },
      ],
    },
  },
  {
    ...{ uid: 'q', generation: 1 },
    spec: {
      ...{ mode: 'Enforce', onStoreError: 'Local', limits: [] },
      match: [{ key: 'k', secretRef: { name: 's' } }],
    },
  },
]

/** More than a read with all its retries takes. */
const STEPS_MAX = 4000

/** Reads the specs from the API server; the result, and the lines that are logged. */
async function read(api: Pick<KubeApi, 'call'>, scheduler = createFakeScheduler()) {
  const metrics = createMetrics()
  const logged: string[] = []
  const log = { ...QUIET_LOG, warn: (_: unknown, msg?: string) => logged.push(msg ?? '') }
  const given = { api, secret: SECRET, scheduler, metrics, log }
  const reading = readAccepted(given, new AbortController().signal)
  const done = new AbortController()
  void reading.finally(() => {
    done.abort()
  })
  for (let steps = 0; !done.signal.aborted; steps++) {
    if (steps > STEPS_MAX) throw new Error('the read did not end')
    await scheduler.advance(50)
    await new Promise((resolve) => setTimeout(resolve, 1)) // for decompression
  }
  const specs = [...(await reading).values()]
  const { values } = await metrics.backgroundFailures.get()
  return { specs, logged, failures: values.map(({ labels, value }) => [labels.task, value]) }
}

test('a new leader reads the specs that its predecessor stored', async () => {
  const { api, scheduler, startLeader, advance } = startVersionWorld()
  expect(await read(api, scheduler)).toEqual({ specs: [], logged: [], failures: [] })
  startLeader().send(versionOf('a'), SPECS)
  await advance(1000)
  expect(await read(api, scheduler)).toEqual({ specs: SPECS, logged: [], failures: [] })
})

test('specs that are accepted without a new version are stored, and only once', async () => {
  const { api, scheduler, startLeader, advance, writes } = startVersionWorld()
  const { send } = startLeader()
  send(versionOf('a'), [])
  await advance(1000)
  for (let at = 0; at < 3; at++) {
    send(versionOf('a'), SPECS)
    await advance(1000)
  }
  send(versionOf('a'), []) // the statuses contain them
  await advance(600_000)
  expect(writes()).toHaveLength(2)
  expect((await read(api, scheduler)).specs).toEqual(SPECS)
})

test('a read is retried twice', async () => {
  const { api, scheduler, startLeader, advance } = startVersionWorld()
  startLeader().send(versionOf('a'), SPECS)
  await advance(1000)
  let calls = 0
  const call: KubeApi['call'] = (given) =>
    ++calls < 3 ? Promise.reject(new Error('lost')) : api.call(given)
  expect(await read({ call }, scheduler)).toEqual({ specs: SPECS, logged: [], failures: [] })
})

const dataOf = (bytes: Uint8Array) => ({
  data: { 'accepted.json.gz': Buffer.from(bytes).toString('base64') },
})
const withoutLimits = gzipSync('[{"uid":"p","generation":1,"spec":{"match":[]}}]')
const truncated = await encodeAccepted(SPECS).then((bytes) => bytes.subarray(0, -9))
const responses: readonly (readonly [string, KubeApi['call']])[] = [
  ['is missing', () => Promise.reject(new Error('not found'))],
  ['is truncated', () => Promise.resolve(dataOf(truncated))],
  ['has other content', () => Promise.resolve(dataOf(withoutLimits))],
  ['decompresses to 33 MiB', () => Promise.resolve(dataOf(gzipSync(Buffer.alloc(33 << 20))))],
  [
    'is not read within 5 s',
    async ({ signal = AbortSignal.abort() }) => {
      await untilAborted(signal)
      throw new Error('aborted')
    },
  ],
]

test.each(responses)('a leader starts without specs if the Secret %s', async (_name, call) => {
  expect(await read({ call })).toEqual({
    specs: [],
    logged: ['accepted specs of the previous leader not read'],
    failures: [['read-version', 1]],
  })
})
