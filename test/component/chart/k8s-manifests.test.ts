// The manifests for clusters without Helm: k8s/standalone, as `kubectl apply -k` renders it, the
// samples, which name objects of the chart, and those of docs/gitops.md.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import type { RateLimitPolicySpec } from '../../../src/kube/rate-limit-policy/rate-limit-policy.ts'
import { policyOf } from '../../../src/kube/rate-limit-policy/watch-policies.ts'
import { compile } from '../../../src/policies/compile.ts'
import { role } from '../../../src/roles/standalone.ts'
import { findCrdSchemas } from '../../dependencies/crd-schemas.ts'
import { findKubeconform } from '../../dependencies/kubeconform.ts'
import { findKubernetesSchemas, schemaLocation } from '../../dependencies/kubernetes-schemas.ts'
import { findKubernetes } from '../../dependencies/kubernetes.ts'
import {
  type GivenValues,
  type KubeObject,
  objectOf,
  parseObjects,
  podsOf,
  renderChart,
  tryRender,
} from '../../kit/chart/chart-render.ts'
import { adviceOn, exceptionsTo } from '../../kit/chart/kube-score.ts'
import { pageBlocks } from '../../kit/gitops-health.ts'
import { writeCustomSchemas } from '../../kit/kube/custom-schemas.ts'

const run = promisify(execFile)
const FIND_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 180_000
/** The samples whose kinds Kubernetes, the chart, the Gateway API, Argo CD and Flux define. */
const SAMPLES = ['code-pool', 'rate-limit-policy', 'gateway-route', 'argo-cd', 'flux'] as const

async function renderManifests(folder = 'k8s/standalone'): Promise<string> {
  const kubectl = join(await findKubernetes((line) => process.stdout.write(`${line}\n`)), 'kubectl')
  const { stdout } = await run(kubectl, ['kustomize', folder], { timeout: TEST_MS_MAX })
  return stdout
}

/** A policy's specification with the defaults of the API server. */
function withDefaults(spec: object = {}): RateLimitPolicySpec {
  const given = { mode: 'Enforce', onStoreError: 'Local', ...spec } as RateLimitPolicySpec
  const defaults = { algorithm: 'FixedWindow' } as const
  return { ...given, limits: given.limits.map((limit) => ({ ...defaults, ...limit })) }
}

const renderKustomization = async (folder?: string) => parseObjects(await renderManifests(folder))
const readSample = (name: string) => readFile(`k8s/samples/${name}.yaml`, 'utf8')

test(
  'k8s/standalone, the samples and the manifests of docs/gitops.md are valid for their APIs',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'curtail-manifests-'))
    const schemas = await mkdtemp(join(tmpdir(), 'curtail-schemas-'))
    try {
      await writeFile(join(folder, 'standalone.yaml'), await renderManifests())
      for (const name of SAMPLES)
        await writeFile(join(folder, `${name}.yaml`), await readSample(name))
      await writeFile(join(folder, 'gitops.yaml'), pageBlocks.join('---\n'))
      await writeCustomSchemas(schemas)
      const all = [await findKubernetesSchemas(), await findCrdSchemas(), schemas]
      const locations = all.flatMap((one) => ['-schema-location', schemaLocation(one)])
      const args = ['-strict', '-summary', ...locations, folder]
      const validating = run(await findKubeconform(), args, { timeout: TEST_MS_MAX })
      // If there are problems, it exits with 1.
      const { stdout } = await validating.catch((error: unknown) => error as { stdout?: string })
      expect(stdout).toMatch(
        /^Summary: (\d\d) resources found in 7 files - Valid: \1, Invalid: 0, Errors: 0,/,
      )
    } finally {
      for (const one of [folder, schemas]) await rm(one, { recursive: true })
    }
  },
  FIND_MS_MAX,
)

test(
  'k8s/standalone runs one restricted pod, whose settings the role reads',
  async () => {
    const objects = await renderKustomization()
    const [pod, ...others] = podsOf(objects)
    expect(others).toEqual([])
    const [container] = pod?.spec.containers ?? []
    expect(pod?.spec.securityContext).toMatchObject({
      ...{ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    })
    expect(container?.securityContext).toEqual({
      ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
      capabilities: { drop: ['ALL'] },
    })
    const data = objects.find(({ kind }) => kind === 'ConfigMap')?.data ?? {}
    const settings = [...Object.keys(data), ...(container?.env ?? []).map(({ name }) => name)]
    expect(settings).toEqual(['BASE_URL', 'DATA_DIR'])
    for (const name of settings) expect(role.settings).toHaveProperty([name])
    const { spec } = objectOf(objects, 'StatefulSet', 'curtail-standalone')
    for (const kind of ['Service', 'NetworkPolicy'])
      expect(JSON.stringify(objectOf(objects, kind, 'curtail-standalone').spec)).toContain(
        JSON.stringify((spec?.['selector'] as { matchLabels: object }).matchLabels),
      )
  },
  TEST_MS_MAX,
)

test(
  'the advice of kube-score does not apply to k8s/standalone',
  async () => {
    const advice = await adviceOn(await renderKustomization())
    expect(advice.filter((one) => exceptionsTo(one).length === 0)).toEqual([])
    expect(advice.map(({ object }) => object)).toContain('StatefulSet curtail-standalone')
  },
  TEST_MS_MAX,
)

test(
  'an overlay, as in docs/install.md, changes the image and a setting',
  async () => {
    const page = await readFile('docs/install.md', 'utf8')
    const [, overlay = ''] = /```yaml\n(apiVersion: kustomize[^]*?)```/.exec(page) ?? []
    const folder = await mkdtemp(join(tmpdir(), 'curtail-overlay-'))
    try {
      await symlink(process.cwd(), join(folder, 'curtail'))
      await writeFile(join(folder, 'kustomization.yaml'), overlay)
      const [objects, plain] = [await renderKustomization(folder), await renderKustomization()]
      const imageOf = (of: readonly KubeObject[]) => podsOf(of)[0]?.spec.containers[0]?.image
      expect([imageOf(plain), imageOf(objects)]).toEqual([
        'localhost/curtail:0.2.0',
        'registry.example.com/curtail:0.2.0',
      ])
      const data = objects.find(({ kind }) => kind === 'ConfigMap')?.data
      expect(data).toEqual({ BASE_URL: 'https://cur.example' })
    } finally {
      await rm(folder, { recursive: true })
    }
  },
  TEST_MS_MAX,
)

test(
  'the samples name objects of the chart, and their policies are accepted beside its own',
  async () => {
    const [chart, file] = [await renderChart({ major: 4 }), await readSample('rate-limit-policy')]
    const route = parse(await readSample('gateway-route')) as {
      spec: { rules: { backendRefs: { name: string; port: number }[] }[] }
    }
    const [backend] = route.spec.rules[0]?.backendRefs ?? []
    const { spec } = objectOf(chart, 'Service', backend?.name ?? '')
    expect(spec?.['ports']).toContainEqual(expect.objectContaining({ port: backend?.port }))
    const ofChart = chart.find(({ kind }) => kind === 'CodePool')
    const pool = parse(await readSample('code-pool')) as KubeObject
    expect(pool.spec?.['codeSecret']).toEqual(ofChart?.spec?.['codeSecret'])
    const [, json = ''] = /'ratelimit\.domains=(.*)'/.exec(file) ?? []
    const grants = JSON.parse(json) as Parameters<typeof compile>[1]
    const policies = [...chart, ...parseObjects(file)]
      .filter(({ kind }) => kind === 'RateLimitPolicy')
      .map(({ metadata, spec: of }, at) => {
        const creationTimestamp = new Date(at).toISOString()
        const own = {
          ...{ name: metadata.name, namespace: 'shop', uid: metadata.name },
          ...{ resourceVersion: '1', creationTimestamp },
        }
        return policyOf({ metadata: own, spec: withDefaults(of) }, [], undefined)
      })
    const { outcomes } = compile(policies, [{ domain: 'edge', namespaces: ['shop'] }, ...grants])
    const problems = [...outcomes].map(([key, outcome]) => [key, outcome.reason ?? 'Accepted'])
    expect(problems.filter(([, reason]) => reason !== 'Accepted')).toEqual([
      [expect.stringContaining('creates-per-partner'), 'SecretNotFound'],
    ])
    expect(problems.length).toBeGreaterThan(7)
  },
  TEST_MS_MAX,
)

test(
  'the chart accepts the sample of its values',
  async () => {
    const values = parse(await readSample('helm-values')) as GivenValues
    expect(await tryRender({ major: 4, values })).toMatchObject({ exitCode: 0, error: '' })
  },
  TEST_MS_MAX,
)
