// The annotation of pods: which pods are patched, and which failures are counted and logged.
import { beforeEach, expect, test } from '@jest/globals'
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { createPodAnnotator, type PodAnnotator } from './annotate-pods.ts'

type Call = Parameters<KubeApi['call']>[0]

const KEY = 'curtail.dev/lists'
const { signal } = new AbortController()
const failure = (status: number, reason = 'R') => new KubeError('no', { status, reason })
const podOf = (name: string, value?: string) => ({
  metadata: {
    ...{ name, namespace: 'n', uid: name, resourceVersion: '1' },
    ...(value !== undefined && { annotations: { [KEY]: value, other: 'x' } }),
  },
})

let pods: readonly ReturnType<typeof podOf>[]
let calls: Call[]
let metrics: Metrics
let warnings: (readonly [object, string])[]
/** The result of the patch of a pod. */
let patch: (pod: string) => Promise<unknown>
let annotator: PodAnnotator

beforeEach(() => {
  pods = [podOf('a'), podOf('b')]
  calls = []
  metrics = createMetrics()
  warnings = []
  patch = () => Promise.resolve({})
  annotator = createPodAnnotator({
    api: {
      async call(call) {
        calls.push(call)
        if (call.method === 'PATCH') return patch(call.path.slice(call.path.lastIndexOf('/') + 1))
        return Promise.resolve({ items: pods, metadata: { resourceVersion: '1' } })
      },
    },
    ...{ namespace: 'n', podSelector: 'app=x', metrics },
    log: { warn: (fields: object, message = '') => warnings.push([fields, message]) },
  })
})

const annotate = (value = 'v', later: readonly string[] = [], stopping = signal) =>
  annotator.annotate({ value, later }, stopping)
const patched = () =>
  calls.filter(({ method }) => method === 'PATCH').map(({ path }) => path.split('/').at(-1))
const counted = async () => (await metrics.backgroundFailures.get()).values.at(0)?.value ?? 0

test('patches the pods that the selector selects', async () => {
  expect(await annotate()).toEqual({ pods: 2, isComplete: true })
  const [list, first] = calls
  expect(list).toMatchObject({
    ...{ method: 'GET', path: '/api/v1/namespaces/n/pods', query: { labelSelector: 'app=x' } },
    accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  })
  expect(first).toEqual({
    ...{ method: 'PATCH', path: '/api/v1/namespaces/n/pods/a', msMax: 5000, signal },
    contentType: 'application/merge-patch+json',
    body: { metadata: { annotations: { [KEY]: 'v' } } },
  })
  expect([warnings, await counted()]).toEqual([[], 0])
})

test('keeps the value and later ones, and replaces others', async () => {
  pods = [podOf('a', 'v'), podOf('b', 'later'), podOf('c', 'x'), podOf('d', ''), podOf('e')]
  expect(await annotate('v', ['later', 'last'])).toEqual({ pods: 5, isComplete: true })
  expect(patched()).toEqual(['c', 'd', 'e'])
})

test('patches at most 8 pods at a time, and each of many once', async () => {
  pods = Array.from({ length: 20 }, (_, at) => podOf(`p${at}`))
  let [running, runningMax] = [0, 0]
  patch = async () => {
    runningMax = Math.max(runningMax, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
  }
  expect(await annotate()).toEqual({ pods: 20, isComplete: true })
  expect([runningMax, new Set(patched()).size, patched().length]).toEqual([8, 20, 20])
})

test('counts each failed pod, and reports only the others', async () => {
  pods = [podOf('a'), podOf('b'), podOf('c')]
  patch = (pod) => (pod === 'b' ? Promise.resolve({}) : Promise.reject(failure(403)))
  expect(await annotate()).toEqual({ pods: 1, isComplete: false })
  expect(await counted()).toBe(2)
  expect(warnings).toMatchObject([[{ failures: 2, err: { status: 403 } }, expect.any(String)]])
})

test('a deleted pod is complete', async () => {
  patch = () => Promise.reject(failure(404))
  expect(await annotate()).toEqual({ pods: 2, isComplete: true })
  expect([await counted(), warnings]).toEqual([0, []])
})

test('logs a failure only if it differs from the last one, or after a success', async () => {
  const attempt = async (error: KubeError | undefined) => {
    patch = () => (error === undefined ? Promise.resolve({}) : Promise.reject(error))
    await annotate()
    return warnings.splice(0).length
  }
  const attempts = [
    [failure(403), 1],
    [failure(403), 0],
    [failure(500), 1],
    [failure(500, 'Other'), 1],
    [undefined, 0],
    [failure(500, 'Other'), 1],
  ] as const
  for (const [error, expected] of attempts) expect(await attempt(error)).toBe(expected)
})

test('a replica that does not lead counts and logs no failure', async () => {
  patch = () => Promise.reject(failure(0, 'NotLeading'))
  expect(await annotate()).toEqual({ pods: 0, isComplete: false })
  expect([await counted(), warnings]).toEqual([0, []])
})

test('a stop ends the patches, and counts no failure', async () => {
  pods = Array.from({ length: 20 }, (_, at) => podOf(`p${at}`))
  const stopping = new AbortController()
  patch = () => {
    stopping.abort()
    return Promise.reject(failure(0, 'Unreachable'))
  }
  expect(await annotate('v', [], stopping.signal)).toMatchObject({ isComplete: false })
  expect(patched().length).toBeLessThanOrEqual(8)
  expect([await counted(), warnings]).toEqual([0, []])
})

test('a stop without a failure is not complete', async () => {
  const stopping = new AbortController()
  patch = () => {
    stopping.abort()
    return Promise.resolve({})
  }
  pods = [podOf('a')]
  expect(await annotate('v', [], stopping.signal)).toEqual({ pods: 1, isComplete: false })
})

test('a list that fails is counted, logged, and not complete', async () => {
  const failing = createPodAnnotator({
    api: { call: () => Promise.reject(failure(500)) },
    ...{ namespace: 'n', podSelector: 'app=x', metrics },
    log: { warn: (fields: object, message = '') => warnings.push([fields, message]) },
  })
  const none = { pods: 0, isComplete: false }
  expect(await failing.annotate({ value: 'v', later: [] }, signal)).toEqual(none)
  expect([await counted(), warnings.length]).toEqual([1, 1])
  expect(await failing.annotate({ value: 'v', later: [] }, AbortSignal.abort())).toEqual(none)
  expect([await counted(), warnings.length]).toEqual([1, 1])
})

test('a defect is thrown', async () => {
  patch = () => Promise.reject(new Error('defect'))
  await expect(annotate()).rejects.toThrow('defect')
  const failing = createPodAnnotator({
    api: { call: () => Promise.reject(new Error('defect')) },
    ...{ namespace: 'n', podSelector: 'app=x', metrics, log: { warn: () => undefined } },
  })
  await expect(failing.annotate({ value: 'v', later: [] }, signal)).rejects.toThrow('defect')
})
