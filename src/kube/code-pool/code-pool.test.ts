// CodePools, Jobs and pods in the API: rendered statuses and parsed objects.
import { expect, test } from '@jest/globals'
import { mergeConditions, formatMicroTime, formatTime } from '../conditions.ts'
import type { Condition } from '../objects.ts'
import { isSameStatus } from '../status.ts'
import { problemOfPod } from './pod-problem.ts'
import { parseTemplate, trimJob } from './refill-jobs.ts'
import { formatDuration } from './render-status.ts'

const metadata = { name: 'j', namespace: 'n', uid: 'u', resourceVersion: '1' }

test('times have the precision that the API server requires', () => {
  expect([formatTime(1_500), formatMicroTime(1_500)]).toEqual([
    '1970-01-01T00:00:01Z',
    '1970-01-01T00:00:01.500000Z',
  ])
})

test('a condition keeps its transition time until its status changes', () => {
  const before: Condition[] = [
    {
      ...{ type: 'Ready', status: 'True', reason: 'A', message: 'a' },
      ...{ lastTransitionTime: '2000-01-01T00:00:00Z', observedGeneration: 1 },
    },
  ]
  const merge = (status: Condition['status']) =>
    mergeConditions(before, [{ type: 'Ready', status, reason: 'B', message: 'x'.repeat(2000) }], {
      nowMs: 0,
      generation: 2,
    })[0]
  expect(merge('True')).toMatchObject({
    ...{ reason: 'B', lastTransitionTime: '2000-01-01T00:00:00Z', observedGeneration: 2 },
  })
  expect(merge('False')?.lastTransitionTime).toBe('1970-01-01T00:00:00Z')
  expect(merge('True')?.message).toHaveLength(1024)
})

test.each([
  [0, '0s'],
  [0.5, '0s'],
  [59, '59s'],
  [3600, '1h'],
  [5 * 3600 + 12 * 60 + 3, '5h12m'],
  [3 * 86_400 + 4 * 3600 + 59, '3d4h'],
])('%d s are formatted as %s', (seconds, formatted) => {
  expect(formatDuration(seconds)).toBe(formatted)
})

test('two statuses are equal for any order of their fields', () => {
  expect(isSameStatus({ level: 1, failures: 2 }, { failures: 2, level: 1 })).toBe(true)
  expect(isSameStatus({ level: 1 }, { level: 2 })).toBe(false)
  expect(isSameStatus(undefined, { level: 2 })).toBe(false)
})

test.each([
  ['', 'must have spec.containers'],
  ['[', 'is not YAML'],
  ['spec: {}', 'must have spec.containers'],
  ['spec: { containers: [{ name: other }] }', 'must have a container named refill'],
])('the template %j %s', (source, message) => {
  expect(parseTemplate(source)).toMatchObject({
    ...{ reason: 'TemplateInvalid', message: expect.stringContaining(message) },
  })
})

test('only the used fields of a Job are kept', () => {
  const annotations = { 'curtail.dev/refill': '3', 'curtail.dev/inputs': 'abc', other: 'x' }
  const creationTimestamp = '2000-01-01T00:00:00Z'
  const of = (status: object) =>
    trimJob({ metadata: { ...metadata, annotations, creationTimestamp }, ...{ status, spec: {} } })
  const lastTransitionTime = '2000-01-01T00:01:00Z'
  const failed = { type: 'Failed', status: 'True', reason: 'R', message: 'm', lastTransitionTime }
  expect(of({ active: 1, ready: 1 })).toEqual({
    metadata,
    ...{ refill: 3, inputs: 'abc', state: 'running', isReady: true, failure: null },
    ...{ startedMs: Date.parse(creationTimestamp), finishedMs: null },
  })
  expect(of({ conditions: [{ ...failed, type: 'FailureTarget' }] }).state).toBe('running')
  expect(of({ conditions: [failed] })).toMatchObject({
    ...{ state: 'failed', failure: 'R: m', finishedMs: Date.parse(lastTransitionTime) },
  })
  expect(of({ conditions: [{ ...failed, type: 'Complete' }] }).state).toBe('succeeded')
})

const exit = (exitCode: number, message: string) => ({ terminated: { exitCode, message } })
const states: readonly [object, string | null][] = [
  [{ waiting: { reason: 'ContainerCreating' } }, null],
  [{ running: {} }, null],
  [exit(0, ''), null],
  [
    { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } },
    'PodNotStarted: refill is waiting: ImagePullBackOff: no such image',
  ],
  [
    exit(1, '{}\ncurtail: the store did not respond\n'),
    'RefillFailed: refill: the store did not respond',
  ],
  [exit(3, 'curtail: another secret'), 'SecretChanged: refill: another secret'],
  [exit(137, ''), 'RefillFailed: refill: Error, exit code 137'],
]

test.each(states)('a pod whose container state is %j: %s', (state, expected) => {
  const problem = problemOfPod({
    metadata,
    status: { containerStatuses: [{ name: 'refill', state }] },
  })
  expect(problem && `${problem.reason}: ${problem.message}`).toBe(expected)
})

test('an unschedulable pod is reported', () => {
  const conditions = [{ type: 'PodScheduled', status: 'False', message: 'no memory' }]
  expect(problemOfPod({ metadata, status: { conditions } })?.reason).toBe('PodUnschedulable')
})
