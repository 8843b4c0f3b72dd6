// The edge that the chart deploys: its bootstrap is byte for byte that of renderBootstrap, Envoy
// accepts it, and the rate limiter accepts its rules.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { splitRule } from '../../../envoy/allowance.ts'
import { completeEdgeSettings, type EdgeSettings } from '../../../envoy/edge-settings.ts'
import { renderBootstrap, renderCertificate } from '../../../envoy/render-bootstrap.ts'
import { findEnvoy } from '../../dependencies/envoy.ts'
import { helmMajors } from '../../dependencies/helm.ts'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  chartFolder,
  type GivenValues,
  type KubeObject,
  objectOf,
  podsOf,
  renderChart,
  someImage,
  tryRender,
} from '../../kit/chart/chart-render.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'

const run = promisify(execFile)
const VALIDATE_MS_MAX = 30_000

let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-chart-edge-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

const host = (name: string) => `shop-curtail-${name}.store.svc.cluster.local`

/** The settings that result from the default values. */
const base = {
  baseUrl: 'http://localhost:8080',
  redirectEndpoints: [{ host: host('redirect'), port: 8080 }],
  createEndpoints: [{ host: host('create'), port: 8080 }],
  limiterEndpoints: [{ host: host('ratelimit'), port: 8081 }],
} as const

/** The default rule of redirects. */
const rule = { burst: 500, perSecond: 200 }
/** Two pods and one more during a rollout, each with two listeners. */
const allowed = splitRule(rule, { allowance: { burst: 5, perMinute: 12 }, buckets: 6 })

const cases: readonly [string, Partial<EdgeSettings>][] = [
  ['default', {}],
  ['TLS at the edge', { baseUrl: 'https://cur.tl', tls: true, ...allowed.edge }],
  [
    'a load balancer with the PROXY protocol',
    {
      proxyProtocol: true,
      failClosed: true,
      tracingHost: 'collector.tracing',
      tracingSamplePercent: 0.5,
    },
  ],
  ['behind a proxy, by a port of the nodes', { trustedHops: 2 }],
]

describe.each(cases)('with %s', (name, settings) => {
  const expected = completeEdgeSettings({ ...base, ...settings })

  test.each(helmMajors)(
    'Helm %d renders the bootstrap of renderBootstrap, byte for byte',
    async (major) => {
      const objects = await renderChart({ major, ...chartCases[name] })
      const { data = {} } = objectOf(objects, 'ConfigMap', 'shop-curtail-edge')
      expect(data['envoy.yaml']).toBe(renderBootstrap(expected))
      expect(data['certificate.yaml']).toBe(expected.tls ? renderCertificate(expected) : undefined)
    },
  )

  test('Envoy accepts the bootstrap', async () => {
    const objects = await renderChart({ major: 4, ...chartCases[name] })
    const { data = {} } = objectOf(objects, 'ConfigMap', 'shop-curtail-edge')
    const mounted = '/etc/curtail/edge/'
    const at = await mkdtemp(join(folder, 'config-'))
    for (const [file, config] of Object.entries(data)) {
      await writeFile(join(at, file), config.replaceAll(mounted, `${at}/`))
    }
    const args = ['--mode', 'validate', '--config-path', join(at, 'envoy.yaml')]
    const quiet = ['-c', 'exec "$0" "$@" >/dev/null', await findEnvoy()] // Envoy opens /dev/stdout
    await run('sh', [...quiet, ...args], { timeout: VALIDATE_MS_MAX }).catch((error: unknown) => {
      const { stderr } = error as { stderr: string }
      throw new Error(`Envoy rejects it: ${stderr.slice(-1000)}`)
    })
  }, 60_000)
})

test('the chart sets every setting of the edge', async () => {
  const template = await readFile(join(chartFolder, 'templates', '_edge.tpl'), 'utf8')
  const given = [...template.matchAll(/^(\w+): /gm)].map(([, name]) => name)
  expect(given.sort()).toEqual(Object.keys(completeEdgeSettings(base)).sort())
})

describe('the allowance', () => {
  const redirectLimit = async (edge: GivenValues) => {
    const objects = await renderChart({ major: 4, values: { edge } })
    const { spec } = objectOf(objects, 'RateLimitPolicy', 'shop-curtail-redirects-per-client')
    return (spec as { limits: unknown[] }).limits[0]
  }
  const size = { burst: 5, perMinute: 30 }
  const allowance = { enabled: true, ...size }
  const autoscaling = { enabled: true, minReplicas: 2, maxReplicas: 9 }

  test.each<[string, GivenValues, number]>([
    ['is off by default', {}, 0],
    ['lowers the rule of the limiter as splitRule does', { allowance }, 3],
    ['counts the pods of an autoscaler', { allowance, autoscaling }, 10],
    [
      'counts both listeners',
      { allowance, autoscaling, tls: { enabled: true, existingSecret: 'cert' } },
      20,
    ],
    ['is off with the values of an earlier release', { allowance: null }, 0],
  ])('%s', async (_, edge, buckets) => {
    const { burst, perSecond: requests } = splitRule(rule, { allowance: size, buckets }).limiter
    expect(await redirectLimit(edge)).toMatchObject({ burst, requests, window: '1s' })
  })

  test.each<[string, GivenValues, string]>([
    [
      'if nothing is left for the limiter',
      { edge: { allowance, replicas: 99 } },
      'edge.allowance leaves nothing for the limiter: 100 allowances',
    ],
    [
      'if the chart does not set the rules',
      { edge: { allowance }, ratelimit: { existingRules: 'mine' } },
      'edge.allowance.enabled must be false if ratelimit.rules',
    ],
  ])('is rejected %s', async (_, values, message) => {
    const given = { image: someImage, ...values }
    const { exitCode, error } = await tryRender({ major: 4, values: given })
    expect([exitCode === 0, error]).toEqual([false, expect.stringContaining(message)])
  })
})

describe('the rules', () => {
  test('of the chart are valid, and limit a client', async () => {
    const objects = await renderChart({ major: 4, ...chartCases['limits in a file'] })
    const { data = {} } = objectOf(objects, 'ConfigMap', 'shop-curtail-ratelimit')
    const file = join(folder, 'rate-limits.yaml')
    await writeFile(file, data['rate-limits.yaml'] ?? '')
    const client = ['--descriptor', 'route=create,client=192.0.2.1/32']
    const { exitCode, stdout, stderr } = await runCurtail(['ratelimit-check', file, ...client])
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toContain('creates-per-client')
  }, 30_000)

  const checks = (objects: readonly KubeObject[]) =>
    objects.filter(({ metadata }) => metadata.name === 'shop-curtail-check-rules')

  test('in the values are checked by a Job before the release changes', async () => {
    const rules = 'domain: edge\ndescriptors: [{ keys: client }]\n'
    const objects = checks(await renderChart({ major: 4, values: { ratelimit: { rules } } }))
    const hooks = objects.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'])
    expect(hooks.map(({ kind }) => kind).sort()).toEqual(['ConfigMap', 'Job', 'ServiceAccount'])
    for (const { metadata } of hooks) {
      expect(metadata.annotations).toMatchObject({
        'helm.sh/hook': 'pre-install,pre-upgrade',
        'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      })
    }
    const { spec } = objectOf(objects, 'Job', 'shop-curtail-check-rules')
    expect(spec).toMatchObject({ backoffLimit: 0, activeDeadlineSeconds: 240 })
    const command = podsOf(objects)[0]?.spec.containers[0]?.command ?? []
    const given = command.slice(command.indexOf('/app/main.js') + 1)
    const file = join(folder, 'rate-limits.yaml')
    const { data = {} } = objectOf(objects, 'ConfigMap', 'shop-curtail-check-rules')
    await writeFile(file, data['rate-limits.yaml'] ?? '')
    const args = given.map((arg) => arg.replace('/etc/curtail/rules/rate-limits.yaml', file))
    const { exitCode, stdout } = await runCurtail(args)
    expect([exitCode, stdout]).toEqual([1, expect.stringContaining('rate-limits.yaml:2: ')])
  }, 30_000)

  test('of the chart, or of an existing ConfigMap, are checked by no Job', async () => {
    for (const ratelimit of [{}, { existingRules: 'mine' }]) {
      expect(checks(await renderChart({ major: 4, values: { ratelimit } }))).toEqual([])
    }
  })
})

test('the kubelet alone can start a drain of the edge, and stops Envoy after it', async () => {
  const objects = await renderChart({ major: 4 })
  const pods = podsOf(objects).filter(({ of }) => of.metadata.name === 'shop-curtail-edge')
  const [pod] = pods
  const { initContainers = [], containers = [], terminationGracePeriodSeconds } = pod?.spec ?? {}
  // The kubelet stops sidecar containers once the others have exited.
  expect(initContainers.map(({ name, restartPolicy }) => [name, restartPolicy])).toEqual([
    ['envoy', 'Always'],
  ])
  expect(containers.map(({ name }) => name)).toEqual(['drain'])
  const hooks = [...initContainers, ...containers].filter(({ lifecycle }) => lifecycle)
  expect(hooks).toEqual([])
  const seconds = containers[0]?.env?.find(({ name }) => name === 'DRAIN_SECONDS')?.value
  expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(Number(seconds) + 10)
})
