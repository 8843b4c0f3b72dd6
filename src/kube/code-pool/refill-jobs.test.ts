// Refill Jobs: the rendered object, and what is read from existing Jobs and templates.
import { expect, test } from '@jest/globals'
import type { KubeObject } from '../objects.ts'
import type { CodePool } from './code-pool.ts'
import {
  inputsHashOf,
  isProblem,
  jobNameOf,
  parseTemplate,
  type PodTemplate,
  poolUidOf,
  renderJob,
  trimJob,
} from './refill-jobs.ts'

const pool: CodePool = {
  metadata: { name: 'my-pool', namespace: 'n', uid: 'u', resourceVersion: '7' },
  spec: {
    ...{ lowWater: 2000, target: 5000, paused: false },
    codeSecret: { name: 's', key: 'k' },
  },
}
const jobSettings = (job: NonNullable<CodePool['spec']['job']>): CodePool => ({
  ...pool,
  spec: { ...pool.spec, job },
})
const inputs = { storeName: 'shared', refill: 3, fillTo: 9000 }
const env = [
  { name: 'CODE_POOL', value: 'shared' },
  { name: 'POOL_TARGET', value: '9000' },
  { name: 'CODE_SECRET_FILE', value: '/etc/curtail/code-secret/secret' },
]
const mount = { name: 'code-secret', mountPath: '/etc/curtail/code-secret', readOnly: true }
const volume = {
  name: 'code-secret',
  secret: { secretName: 's', items: [{ key: 'k', path: 'secret' }] },
}
const template: PodTemplate = { spec: { containers: [{ name: 'refill', image: 'i' }] } }

test('a Job belongs to its CodePool, and has labels, annotations and bounds', () => {
  const { metadata, spec } = renderJob(pool, { ...inputs, template })
  const owner = { kind: 'CodePool', name: 'my-pool', uid: 'u', controller: true }
  expect(metadata).toEqual({
    ...{ name: jobNameOf(pool, 3), namespace: 'n' },
    labels: {
      'app.kubernetes.io/managed-by': 'curtail-controller',
      'app.kubernetes.io/part-of': 'curtail',
      'curtail.dev/codepool': 'my-pool',
    },
    annotations: {
      'curtail.dev/refill': '3',
      'curtail.dev/inputs': inputsHashOf(pool, { ...inputs, template }),
    },
    ownerReferences: [{ apiVersion: 'curtail.dev/v1alpha1', ...owner }],
  })
  expect(spec).toMatchObject({
    ...{ parallelism: 1, completions: 1, backoffLimit: 1, activeDeadlineSeconds: 3600 },
    podFailurePolicy: {
      rules: [
        { action: 'FailJob', onExitCodes: { containerName: 'refill', values: [2, 3] } },
        { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
      ],
    },
  })
})

test('a minimal template gets the environment and the volume of the code secret', () => {
  const { spec } = renderJob(pool, { ...inputs, template })
  const container = { name: 'refill', image: 'i', env, volumeMounts: [mount] }
  expect(spec.template).toEqual({
    metadata: { labels: { 'curtail.dev/codepool': 'my-pool' } },
    spec: {
      restartPolicy: 'Never',
      containers: [{ ...container, terminationMessagePolicy: 'FallbackToLogsOnError' }],
      volumes: [volume],
    },
  })
})

test('the other fields of a template are kept, its settings of the pool are replaced', () => {
  const other = { name: 'sidecar', env: [{ name: 'CODE_POOL', value: 'x' }] }
  const { spec } = renderJob(pool, {
    ...inputs,
    template: {
      metadata: { labels: { app: 'refill' } },
      spec: {
        containers: [
          other,
          {
            name: 'refill',
            env: [{ name: 'POOL_TARGET', value: '1' }, { name: 'A' }],
            volumeMounts: [{ name: 'code-secret', mountPath: '/x' }, { name: 'tmp' }],
          },
        ],
        volumes: [
          { name: 'tmp' },
          { name: 'code-secret', secret: { secretName: 'none', defaultMode: 288 } },
        ],
        serviceAccountName: 'a',
      },
    },
  })
  expect(spec.template.metadata.labels).toEqual({
    ...{ app: 'refill', 'curtail.dev/codepool': 'my-pool' },
  })
  expect(spec.template.spec).toMatchObject({ serviceAccountName: 'a', containers: [other, {}] })
  const [, refill] = spec.template.spec.containers
  expect(refill).toMatchObject({
    env: [{ name: 'A' }, ...env],
    volumeMounts: [{ name: 'tmp' }, mount],
  })
  expect(spec.template.spec.volumes).toEqual([
    { name: 'tmp' },
    { ...volume, secret: { ...volume.secret, defaultMode: 288 } },
  ])
})

test('the CodePool can set the deadline and the resources', () => {
  const resources = { limits: { cpu: '1' } }
  const given = jobSettings({ activeDeadlineSeconds: 60, resources })
  const { spec } = renderJob(given, { ...inputs, template })
  expect(spec.activeDeadlineSeconds).toBe(60)
  expect(spec.template.spec.containers[0]).toMatchObject({ resources })
  const without = renderJob(jobSettings({ activeDeadlineSeconds: 60 }), { ...inputs, template })
  expect(without.spec.template.spec.containers[0]).not.toHaveProperty('resources')
})

test('the name of a Job starts with that of its CodePool', () => {
  expect(jobNameOf(pool, 1)).toMatch(/^my-pool-refill-[0-9a-f]{10}$/)
})

const object = (metadata: object = {}, status?: object): KubeObject & { status?: object } => ({
  metadata: { name: 'j', namespace: 'n', uid: 'u', resourceVersion: '1', ...metadata },
  ...(status !== undefined && { status }),
})

test('a Job without annotations, times and a status is running, and is no refill', () => {
  expect(trimJob(object())).toEqual({
    ...{ ...object(), refill: 0, inputs: '', startedMs: 0, isReady: false },
    ...{ state: 'running', finishedMs: null, failure: null },
  })
  expect(trimJob(object({ creationTimestamp: 'x' }, { ready: 0 }))).toMatchObject({
    ...{ startedMs: 0, isReady: false },
  })
})

test('the time of the deletion and the owners of a Job are kept', () => {
  const owner = { apiVersion: 'v1', kind: 'K', name: 'k', uid: 'owner', controller: true }
  const kept = { deletionTimestamp: '2000-01-01T00:00:00Z', ownerReferences: [owner] }
  const job = trimJob(object({ ...kept, labels: {} }))
  expect(job.metadata).toEqual(object(kept).metadata)
  expect(poolUidOf(job)).toBe('owner')
  expect(poolUidOf(object({ ownerReferences: [{ ...owner, controller: false }] }))).toBeUndefined()
  expect(poolUidOf(object())).toBeUndefined()
})

test.each([
  [{ type: 'Complete', status: 'False' }, 'running', null],
  [{ type: 'Failed', status: 'False' }, 'running', null],
  [{ type: 'Suspended', status: 'True' }, 'running', null],
  [{ type: 'Complete', status: 'True', reason: 'R' }, 'succeeded', null],
  [{ type: 'Failed', status: 'True' }, 'failed', ': '],
])('a Job with the condition %j is %s', (condition, state, failure) => {
  expect(trimJob(object({}, { conditions: [condition] }))).toMatchObject({
    ...{ state, failure, finishedMs: null },
  })
})

test.each([
  ['null', 'must have spec.containers'],
  ['spec: { containers: refill }', 'must have spec.containers'],
  ['spec: { containers: [] }', 'must have a container named refill'],
  ['spec: { containers: [null, { image: i }] }', 'must have a container named refill'],
])('the template %j %s', (source, message) => {
  const problem = parseTemplate(source)
  expect([isProblem(problem), problem]).toEqual([
    true,
    { reason: 'TemplateInvalid', message: expect.stringContaining(message) },
  ])
})

test('a valid template is returned with all of its fields', () => {
  const valid = parseTemplate(
    '{ metadata: { labels: { a: b } }, spec: { containers: [{ name: refill }] } }',
  )
  expect([isProblem(valid), valid]).toEqual([
    false,
    { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'refill' }] } },
  ])
})
