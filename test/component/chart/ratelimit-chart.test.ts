// The chart of the rate limiter alone: the source of its rules, the pods that may call it, and the
// errors for invalid values. Tests of the chart curtail render its cases too.
import { execFile } from 'node:child_process'
import { cp, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, jest, test } from '@jest/globals'
import { findHelm, helmMajors } from '../../dependencies/helm.ts'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  chartFolder,
  containersOf,
  type GivenValues,
  type KubeObject,
  limiterFolder,
  objectOf,
  podsOf,
  type RenderOptions,
  renderChart,
  someImage,
  tryRender,
} from '../../kit/chart/chart-render.ts'

const NAME = 'shop-curtail-ratelimit'
const LINT_MS_MAX = 60_000
const run = promisify(execFile)
jest.setTimeout(2 * LINT_MS_MAX)

/** Renders a chart that has the chart as its dependency. */
async function renderUmbrella(options: RenderOptions, alias?: string) {
  const umbrella = await mkdtemp(join(tmpdir(), 'curtail-umbrella-'))
  try {
    const from = await realpath(options.chart ?? chartFolder)
    const name = basename(from)
    const dependencies = [{ name, version: '>=0.0.0-0', alias }]
    const definition = { apiVersion: 'v2', name: 'platform', version: '1.0.0', dependencies }
    await writeFile(join(umbrella, 'Chart.yaml'), JSON.stringify(definition))
    await cp(from, join(umbrella, 'charts', name), { recursive: true })
    return await renderChart({ ...options, chart: umbrella })
  } finally {
    await rm(umbrella, { recursive: true, force: true })
  }
}

async function renderCase(name: string): Promise<readonly KubeObject[]> {
  const options = chartCases[name]
  if (options === undefined) throw new Error(`no case ${name}`)
  return renderChart({ major: 4, ...options })
}

/** The settings of the rate limiter's pods, each as `NAME=value`. */
function settingsOf(objects: readonly KubeObject[]): readonly string[] {
  const pod = podsOf(objects).find(
    ({ of }) => of.kind === 'Deployment' && of.metadata.name === NAME,
  )
  const [container] = pod === undefined ? [] : containersOf(pod)
  return (container?.env ?? []).map(({ name, value = '' }) => `${name}=${value}`)
}

/** The rules of the NetworkPolicy of the rate limiter. */
function policyOf(objects: readonly KubeObject[]) {
  return objectOf(objects, 'NetworkPolicy', NAME).spec as {
    readonly ingress: readonly { readonly ports: unknown; readonly from?: unknown }[]
    readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[]
  }
}

describe('rules by xDS', () => {
  test.each([
    ['rules from an xDS server', 18_001],
    ['the rate limiter alone, with rules by xDS and an external Redis', 15_010],
  ])('are the only source, and the policy allows their server: %s', async (name, port) => {
    const objects = await renderCase(name)
    const settings = settingsOf(objects)
    expect(settings).toEqual(
      expect.arrayContaining([
        'CONFIG_TYPE=GRPC_XDS_SOTW',
        'CONFIG_GRPC_XDS_SERVER_URL=control-plane.gateway:18001',
        'CONFIG_GRPC_XDS_NODE_ID=limits',
        'CONFIG_GRPC_XDS_SERVER_USE_TLS=true',
      ]),
    )
    expect(settings.filter((setting) => setting.startsWith('RUNTIME_'))).toEqual([])
    const maps = objects.filter(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === NAME,
    )
    expect(maps).toEqual([])
    const ports = policyOf(objects).egress.flatMap((rule) => rule.ports.map((one) => one.port))
    expect(ports).toEqual([6379, port, 53, 53])
  })
})

describe('the rate limiter alone', () => {
  test('accepts rules of any domain, and calls of all pods or of its clients', async () => {
    const files = await renderCase('the rate limiter alone')
    expect(
      settingsOf(files).filter((setting) => /^(REQUIRED_DOMAIN|BASE_URL)=/.test(setting)),
    ).toEqual([])
    const ports = [8080, 8081].map((port) => ({ protocol: 'TCP', port }))
    expect(policyOf(files).ingress).toEqual([{ ports }])
    const restricted = await renderCase(
      'the rate limiter alone, with rules by xDS and an external Redis',
    )
    const from = [{ podSelector: { matchLabels: { app: 'prometheus' } } }]
    expect(policyOf(restricted).ingress[0]).toEqual({ ports, from })
  })

  test.each(helmMajors)(
    'has only objects that the chart curtail has too, with Helm %d',
    async (major) => {
      const rules = 'domain: edge\ndescriptors: []\n'
      const render = (chart: string) =>
        renderChart({ major, chart, values: { ratelimit: { rules }, podDefaults: { labels: {} } } })
      const [alone, whole] = await Promise.all([render(limiterFolder), render(chartFolder)])
      const keyOf = ({ kind, metadata }: KubeObject) => `${kind} ${metadata.name}`
      const ofWhole = whole.map(keyOf)
      expect(alone.map(keyOf).filter((key) => !ofWhole.includes(key))).toEqual([])
      expect(alone.length).toBeGreaterThan(10)
    },
  )

  test.each(helmMajors)(
    'is the same as a dependency of another chart, with Helm %d',
    async (major) => {
      const values = { image: someImage, ratelimit: { rules: 'domain: shop\ndescriptors: []\n' } }
      const alone = await renderChart({ major, chart: limiterFolder, values })
      const given = { 'curtail-ratelimit': values }
      expect(await renderUmbrella({ major, chart: limiterFolder, values: given })).toEqual(alone)
    },
  )

  test.each(helmMajors)(
    'renders nothing in the chart curtail under another name, with Helm %d',
    async (major) => {
      const options = { major, values: { image: someImage } }
      const whole = await renderChart(options)
      const values = { shortener2: options.values }
      const aliased = await renderUmbrella({ major, values }, 'shortener2')
      const namesOf = (objects: readonly KubeObject[]) =>
        objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()
      expect(namesOf(aliased)).toEqual(namesOf(whole))
    },
  )

  test.each(helmMajors)('needs rules for an upgrade, with Helm %d', async (major) => {
    const helm = await findHelm(major)
    const upgrade = (...args: readonly string[]) =>
      run(helm, ['template', 'shop', limiterFolder, '--is-upgrade', ...args], {
        timeout: LINT_MS_MAX,
      })
    await expect(upgrade()).rejects.toMatchObject({
      stderr: expect.stringContaining('without rules an upgrade would admit every request'),
    })
    await upgrade('--set', 'ratelimit.existingRules=limits')
  })

  test.each(helmMajors)('passes helm %d lint, as do the other charts', async (major) => {
    const helm = await findHelm(major)
    for (const chart of [limiterFolder, chartFolder, 'charts/curtail-crds']) {
      const { stderr } = await run(helm, ['lint', '--strict', chart], { timeout: LINT_MS_MAX })
      expect(stderr).toBe('')
    }
  })
})

describe.each(helmMajors)('Helm %d rejects', (major) => {
  const rules = 'domain: shop\ndescriptors: []\n'
  test.each<[string, GivenValues, string]>([
    ['no image', { image: { repository: '' } }, 'image.repository must name the image'],
    [
      'rules from two sources',
      { ratelimit: { rules, xds: { server: 'a:1' } } },
      'must be empty if ratelimit.xds.server is set',
    ],
    ['rules without a domain', { ratelimit: { rules: 'descriptors: []' } }, 'must have a domain'],
    ['an xDS server without a port', { ratelimit: { xds: { server: 'a' } } }, 'does not match'],
    ['a value of the chart curtail', { edge: { replicas: 3 } }, "edge'? (is )?not allowed"],
  ])('%s', async (_, values, message) => {
    const given = { image: someImage, ...values }
    const { exitCode, error } = await tryRender({ major, chart: limiterFolder, values: given })
    expect([exitCode === 0, error]).toEqual([
      false,
      expect.stringMatching(new RegExp(message, 'i')),
    ])
  })
})

test('the values of a release without the newer values of ratelimit render the same', async () => {
  // --reuse-values replaces the defaults, so that values added since are absent; so does null.
  for (const major of helmMajors) {
    const values = { image: someImage }
    const usual = await renderChart({ major, values })
    const ratelimit = { xds: null, limits: null, policies: null, domains: null }
    const reused = await renderChart({ major, values: { ...values, ratelimit } })
    expect(reused).toEqual(usual)
  }
})
