// The health checks of docs/gitops.md, evaluated on CodePools with the status that the controller
// renders, and the manifests of that page.
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import type { ObservedPool, ObservedStore } from '../src/codes/observed-state.ts'
import { planRefillJob } from '../src/codes/plan-refill-job.ts'
import type { CodePool } from '../src/kube/code-pool/code-pool.ts'
import { renderStatus } from '../src/kube/code-pool/render-status.ts'
import { healthInArgo, ofKind, statusInFlux } from './kit/gitops-health.ts'

const NOW = 1_000_000_000

/** A CodePool with the status that the controller writes for `observed`. */
function poolWith(changes: Partial<ObservedPool>, isPaused = false): CodePool {
  const observed: ObservedPool = {
    spec: { lowWater: 2000, target: 5000, headroomHours: null, isPaused },
    stored: { ...{ kind: 'present', level: 3000, rate: 0, owner: 'n/p' }, lowWater: 0, target: 0 },
    self: 'n/p',
    mayReplace: null,
    conflictingOwner: null,
    inputs: 'a',
    jobs: [],
    history: { started: 0, last: null, failures: 0 },
    ...changes,
  }
  const pool: CodePool = {
    metadata: { ...{ name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1' }, generation: 2 },
    spec: {
      ...{ lowWater: 2000, target: 5000, paused: isPaused },
      codeSecret: { name: 's', key: 'secret' },
    },
  }
  const plan = planRefillJob(observed, NOW)
  return { ...pool, status: renderStatus(pool, { observed, plan, storeName: 'n/p', nowMs: NOW }) }
}

const empty: ObservedStore = { kind: 'absent' }
const problem = { reason: 'TemplateMissing', message: 'no template' }

const cases: readonly { name: string; pool: CodePool; health: string; message: string }[] = [
  {
    ...{ name: 'with enough codes', pool: poolWith({}), health: 'Healthy Current' },
    message: 'the level is at least spec.lowWater',
  },
  {
    ...{ name: 'that was never filled', pool: poolWith({ stored: empty }) },
    ...{ health: 'Progressing InProgress', message: 'the pool has never been filled' },
  },
  {
    ...{ name: 'with a problem', pool: poolWith({ inputs: problem }) },
    ...{ health: 'Degraded Failed', message: problem.message },
  },
  {
    ...{ name: 'paused without codes', pool: poolWith({ stored: empty }, true) },
    ...{ health: 'Suspended Current', message: 'spec.paused is true' },
  },
  {
    name: 'whose store is unavailable',
    pool: poolWith({ stored: { kind: 'unknown', reason: 'timed out' } }),
    ...{ health: 'Progressing InProgress', message: 'timed out' },
  },
]

test.each(cases)('a CodePool $name: $health', async ({ pool, health, message }) => {
  const inArgo = await healthInArgo('CodePool', pool)
  expect(`${inArgo.status} ${statusInFlux('CodePool', pool)}`).toBe(health)
  expect(inArgo.message).toBe(message)
})

test.each(['CodePool', 'RateLimitPolicy'])(
  'a %s that the controller has not read',
  async (kind) => {
    const objects = [
      { metadata: { generation: 1 } },
      { ...poolWith({}), metadata: { generation: 3 } },
    ]
    for (const object of objects) {
      expect((await healthInArgo(kind, object)).status).toBe('Progressing')
      expect(statusInFlux(kind, object)).toBe('InProgress')
    }
  },
)

test.each([
  ['Programmed', 'Healthy', 'Current'],
  ['Reconciling', 'Progressing', 'InProgress'],
  ['Stalled', 'Degraded', 'Failed'],
])('a RateLimitPolicy with the condition %s', async (type, inArgo, inFlux) => {
  const conditions = [{ type, status: 'True', reason: 'R', message: 'why' }]
  const object = { metadata: { generation: 1 }, status: { observedGeneration: 1, conditions } }
  expect(await healthInArgo('RateLimitPolicy', object)).toEqual({ status: inArgo, message: 'why' })
  expect(statusInFlux('RateLimitPolicy', object)).toBe(inFlux)
})

const schema = JSON.parse(readFileSync('charts/curtail/values.schema.json', 'utf8')) as object
const validate = new Ajv({ strict: false }).compile(schema)

/** The versions of the charts, which are equal. */
const { version } = parse(readFileSync('charts/curtail/Chart.yaml', 'utf8')) as { version: string }

test('the Applications refer to charts of the project, with values that they accept', () => {
  const sources = ofKind('Application').map(({ spec }) => spec?.source)
  expect(sources.map((source) => source?.path ?? source?.chart)).toEqual([
    ...['curtail', 'charts/curtail-crds', 'charts/curtail'],
  ])
  const versions = sources.map((source) => source?.targetRevision)
  expect(versions).toEqual([version, `v${version}`, `v${version}`])
  for (const source of [sources[0], sources[2]])
    expect([validate(source?.helm?.valuesObject), validate.errors]).toEqual([true, null])
})

test('the HelmReleases install both charts from one source, the CRDs first', () => {
  const [, crds, shop] = ofKind('HelmRelease')
  const [source] = ofKind('GitRepository')
  const charts = [crds, shop].map((release) => release?.spec?.chart?.spec)
  expect(charts.map((one) => one?.chart)).toEqual(['./charts/curtail-crds', './charts/curtail'])
  const sourceRef = { kind: source?.kind, name: source?.metadata.name }
  expect(charts.map((one) => one?.sourceRef)).toEqual([sourceRef, sourceRef])
  expect(source?.spec?.ref?.tag).toBe(`v${version}`)
  expect(shop?.spec?.dependsOn).toEqual([{ name: crds?.metadata.name }])
  const places = [source, crds, shop].map((one) => one?.metadata.namespace)
  expect(new Set(places).size).toBe(1)
  expect([validate(shop?.spec?.values), validate.errors]).toEqual([true, null])
})

test('the HelmRelease of a chart in a registry differs from the sample only in its source', () => {
  const [shop, , sample] = ofKind('HelmRelease')
  const [source] = ofKind('OCIRepository')
  expect(source?.spec?.ref?.tag).toBe(version)
  expect(source?.metadata.namespace).toBe(shop?.metadata.namespace)
  const chartRef = { kind: source?.kind, name: source?.metadata.name }
  // A chart of a release names its image, so that no values are required.
  const changes = { chart: undefined, values: undefined, chartRef }
  expect(shop).toEqual({ ...sample, spec: { ...sample?.spec, ...changes } })
})
