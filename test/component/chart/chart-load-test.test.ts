// The load test that the chart renders, and the sample for the k6-operator: both run existing
// scenarios with the k6 version of the tests. By default the chart renders no load test.
import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { scenarios } from '../../../loadtest/copy-to-chart.ts'
import { K6_VERSION } from '../../dependencies/k6.ts'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  type GivenValues,
  type KubeObject,
  objectOf,
  podsOf,
  renderChart,
  someImage,
  tryRender,
} from '../../kit/chart/chart-render.ts'

const TEST_MS_MAX = 180_000
const NAME = 'shop-curtail-load-test'
const render = (name: string) => renderChart({ major: 4, ...chartCases[name] })
const jobOf = (objects: readonly KubeObject[]) =>
  podsOf(objects).find(({ labels }) => labels['app.kubernetes.io/component'] === 'load-test')

test(
  'the chart renders no load test by default',
  async () => {
    const manifests = JSON.stringify(await render('default'))
    expect(manifests).not.toContain('load-test')
    expect(manifests).not.toContain('k6')
  },
  TEST_MS_MAX,
)

test(
  'the ConfigMap contains the unchanged scenarios',
  async () => {
    const { data = {} } = objectOf(await render('a load test'), 'ConfigMap', NAME)
    const files = [...scenarios, 'clients', 'shapes', 'summaries'].map((name) => `${name}.ts`)
    expect(Object.keys(data).sort()).toEqual(files.sort())
    for (const [file, script] of Object.entries(data)) {
      expect(script).toBe(
        await readFile(new URL(`../../../loadtest/${file}`, import.meta.url), 'utf8'),
      )
    }
  },
  TEST_MS_MAX,
)

test(
  'the Job runs one scenario against the edge, with the environment that the values set',
  async () => {
    const job = jobOf(await render('a load test'))
    expect(job?.of).toMatchObject({ kind: 'Job', spec: { backoffLimit: 0 } })
    const [container] = job?.spec.containers ?? []
    expect(container?.image).toBe(`docker.io/grafana/k6:${K6_VERSION}`)
    expect(container?.command?.at(-1)).toBe('/scripts/mixed.ts')
    expect(container?.env).toEqual([
      { name: 'BASE_URL', value: 'http://shop-curtail-edge:80' },
      { name: 'SHAPE', value: 'peak' },
      { name: 'OUT_FOLDER', value: '/results' },
      { name: 'K6_AUTO_EXTENSION_RESOLUTION', value: 'false' },
      { name: 'CLIENTS', value: '100' },
      { name: 'RATE', value: '500' },
    ])
  },
  TEST_MS_MAX,
)

test(
  'the Job has another name for other values, because Jobs are immutable',
  async () => {
    const values = { edge: { trustedHops: 1 }, loadTest: { enabled: true } }
    const otherValues = { ...values, loadTest: { enabled: true, shape: 'soak' } }
    const names = [values, values, otherValues].map(async (given) => {
      return jobOf(await renderChart({ major: 4, values: given }))?.of.metadata.name
    })
    const [one, same, other] = await Promise.all(names)
    expect(one).toBe(same)
    expect(one).not.toBe(other)
  },
  TEST_MS_MAX,
)

test(
  'the Job uses baseUrl and the API key; with run: false the chart renders only the scenarios',
  async () => {
    const [container] = jobOf(await render('a load test of another service'))?.spec.containers ?? []
    expect(container?.command?.at(-1)).toBe('/scripts/code-walker.ts')
    expect(container?.env).toContainEqual({ name: 'BASE_URL', value: 'https://staging.example' })
    const secretKeyRef = { name: 'staging-key', key: 'value' }
    expect(container?.env).toContainEqual({ name: 'API_KEY', valueFrom: { secretKeyRef } })
    const alone = await renderChart({
      major: 4,
      values: { loadTest: { enabled: true, run: false } },
    })
    expect(jobOf(alone)).toBeUndefined()
    expect(objectOf(alone, 'ConfigMap', NAME).data).toHaveProperty(['mixed.ts'])
  },
  TEST_MS_MAX,
)

test.each<[string, GivenValues]>([
  ['no hop is trusted', { trustedHops: 0 }],
  ['two hops are trusted', { trustedHops: 2 }],
  ['connections start with the PROXY protocol', { trustedHops: 1, proxyProtocol: true }],
])(
  'the chart fails with the reason if %s, because all clients would share one address',
  async (_, edge) => {
    const values = { image: someImage, edge, loadTest: { enabled: true } }
    const { exitCode, error } = await tryRender({ major: 4, values })
    expect(exitCode).toBe(1)
    expect(error).toContain('loadTest.run needs edge.trustedHops 1')
  },
  TEST_MS_MAX,
)

test(
  'the TestRun of the k6-operator names existing objects of the chart',
  async () => {
    const sample = new URL('../../../k8s/samples/k6-test-run.yaml', import.meta.url)
    const { kind, spec, metadata } = parse(await readFile(sample, 'utf8')) as {
      kind: string
      metadata: { namespace: string }
      spec: {
        script: { configMap: { name: string; file: string } }
        runner: { image: string; env: { name: string; value: string }[] }
      }
    }
    expect([kind, metadata.namespace]).toEqual(['TestRun', 'shop'])
    const values = { loadTest: { enabled: true, run: false } }
    const objects = await renderChart({ major: 4, values })
    const { data = {} } = objectOf(objects, 'ConfigMap', spec.script.configMap.name)
    expect(Object.keys(data)).toContain(spec.script.configMap.file)
    expect(spec.runner.image).toBe(`docker.io/grafana/k6:${K6_VERSION}`)
    const baseUrl = spec.runner.env.find(({ name }) => name === 'BASE_URL')?.value ?? ''
    expect(objectOf(objects, 'Service', new URL(baseUrl).hostname)).toBeDefined()
  },
  TEST_MS_MAX,
)
