// Problems of the pods of a refill Job: which pod, container and event is reported.
import { expect, test } from '@jest/globals'
import type { KubeApi } from '../api.ts'
import { problemOfPod, readPodProblem } from './pod-problem.ts'

type Call = Parameters<KubeApi['call']>[0]
type Pod = Parameters<typeof problemOfPod>[0]

const { signal } = new AbortController()
const podOf = (name: string, creationTimestamp?: string, status?: Pod['status']): Pod => ({
  metadata: {
    ...{ name, namespace: 'n', uid: `uid-${name}`, resourceVersion: '1' },
    ...(creationTimestamp !== undefined && { creationTimestamp }),
  },
  ...(status !== undefined && { status }),
})
const waiting = (reason: string, name = 'refill'): NonNullable<Pod['status']> => ({
  containerStatuses: [{ name, state: { waiting: { reason } } }],
})

/** Reads the problem of the Job `j`, with these lists of pods and events. */
async function read(pods: object, events: object = {}) {
  const calls: Call[] = []
  const api: KubeApi = {
    call(call) {
      calls.push(call)
      return Promise.resolve(call.path.endsWith('/pods') ? pods : events)
    },
    async *lines() {
      yield await Promise.resolve('')
    },
  }
  return { problem: await readPodProblem(api, { namespace: 'n', job: 'j', signal }), calls }
}

test.each([[{}], [{ items: [] }]])('a Job with the pods %j has no problem', async (pods) => {
  const { problem, calls } = await read(pods)
  expect([problem, calls.length]).toEqual([null, 1])
  expect(calls[0]).toMatchObject({
    ...{ method: 'GET', path: '/api/v1/namespaces/n/pods', signal },
    query: { labelSelector: 'batch.kubernetes.io/job-name=j' },
  })
})

test('only the newest pod counts, however they are listed', async () => {
  const old = podOf('a', '2000-01-01T00:00:00Z', waiting('Old'))
  const young = podOf('b', '2000-01-01T00:00:01Z', waiting('Young'))
  const unknown = podOf('c', undefined, waiting('Unknown'))
  for (const items of [
    [old, young, unknown],
    [unknown, young, old],
  ]) {
    const { problem, calls } = await read({ items })
    expect([problem?.message, calls.length]).toEqual(['refill is waiting: Young: ', 1])
  }
})

test('a pod without a problem in its status reports its last warning', async () => {
  const items = [
    { reason: 'First', note: 'one' },
    { reason: 'BackOff', note: 'two' },
  ]
  const { problem, calls } = await read({ items: [podOf('a')] }, { items })
  expect(problem).toEqual({ reason: 'PodNotStarted', message: 'BackOff: two' })
  expect(calls[1]).toMatchObject({
    ...{ method: 'GET', path: '/apis/events.k8s.io/v1/namespaces/n/events', signal },
    query: { fieldSelector: 'regarding.uid=uid-a,type=Warning' },
  })
})

test.each([[{}], [{ items: [] }]])('a pod with the events %j has no problem', async (events) => {
  expect((await read({ items: [podOf('a')] }, events)).problem).toBeNull()
})

test('a warning without a reason or a note is reported', async () => {
  const { problem } = await read({ items: [podOf('a')] }, { items: [{}] })
  expect(problem).toEqual({ reason: 'PodNotStarted', message: 'Warning: ' })
})

test.each([
  ['MountVolume.SetUp failed: secret "code-secret" not found', 'SecretMissing'],
  ['secret "" not found', 'SecretMissing'],
  ['references non-existent secret key: secret', 'SecretMissing'],
  ['configmap "settings" not found', 'PodNotStarted'],
  ['secret "a" is immutable', 'PodNotStarted'],
])('the warning %j has the reason %s', async (note, reason) => {
  const { problem } = await read({ items: [podOf('a')] }, { items: [{ reason: 'W', note }] })
  expect(problem).toEqual({ reason, message: `W: ${note}` })
})

const statusProblem = (status: Pod['status']) => problemOfPod(podOf('a', undefined, status))

test('only a failed schedule is a problem, with its message or a default', () => {
  const failed = { type: 'PodScheduled', status: 'False' }
  expect(statusProblem({ conditions: [{ ...failed, message: 'no memory' }] })).toEqual({
    ...{ reason: 'PodUnschedulable', message: 'no memory' },
  })
  expect(statusProblem({ conditions: [failed] })?.message).toBe('no node accepts the pod')
  expect(statusProblem({ conditions: [{ ...failed, status: 'True' }] })).toBeNull()
  expect(statusProblem({ conditions: [{ ...failed, type: 'Ready' }] })).toBeNull()
})

test('the first container with a problem is reported, init containers first', () => {
  const init = [{ name: 'init', state: { terminated: { exitCode: 3 } } }]
  const containers = [
    { name: 'sidecar' },
    { name: 'log', state: { waiting: { reason: 'PodInitializing' } } },
    { name: 'refill', state: { terminated: { exitCode: 0 } } },
    { name: 'proxy', state: { waiting: { reason: 'CrashLoop', message: 'exits' } } },
  ]
  expect(statusProblem({ containerStatuses: containers })).toEqual({
    ...{ reason: 'PodNotStarted', message: 'proxy is waiting: CrashLoop: exits' },
  })
  expect(statusProblem({ initContainerStatuses: init, containerStatuses: containers })).toEqual({
    ...{ reason: 'RefillFailed', message: 'init: Error, exit code 3' },
  })
})

test.each([
  [{ exitCode: 137, reason: 'OOMKilled' }, 'refill: OOMKilled, exit code 137'],
  [{ exitCode: 1, message: 'curtail: one\ncurtail: two\n{}' }, 'refill: two'],
  [{ exitCode: 1, message: 'not curtail: one' }, 'refill: Error, exit code 1'],
])('a container that terminates with %j is reported', (terminated, message) => {
  const containerStatuses = [{ name: 'refill', state: { terminated } }]
  expect(statusProblem({ containerStatuses })).toEqual({ reason: 'RefillFailed', message })
})

test('a container that waits without a reason has no problem', () => {
  const containerStatuses = [{ name: 'refill', state: { waiting: {} } }]
  expect(statusProblem({ containerStatuses })).toBeNull()
})
