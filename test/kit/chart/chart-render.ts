// Renders the chart with `helm template`, without a cluster, and finds pods and containers in the
// manifests. Contains no expectation.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import type { CodePool } from '../../../src/kube/code-pool/code-pool.ts'
import { isProblem, parseTemplate, renderJob } from '../../../src/kube/code-pool/refill-jobs.ts'
import { findHelm, type HelmMajor } from '../../dependencies/helm.ts'

/** The folder of the chart `curtail`. */
export const chartFolder = fileURLToPath(new URL('../../../charts/curtail', import.meta.url))
/** The folder of the chart `curtail-ratelimit`, a symbolic link into that of `curtail`. */
export const limiterFolder = `${chartFolder}-ratelimit`

const RENDER_MS_MAX = 20_000
const OUTPUT_BYTES_MAX = 32 * 1024 * 1024

/** The fields of a Kubernetes object that tests read. */
export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: Readonly<Record<string, unknown>>
  readonly data?: Readonly<Record<string, string>>
}

/** The fields of a container that tests read. */
export interface Container {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  /** `Always` for a sidecar container among the init containers. */
  readonly restartPolicy?: string
  readonly args?: readonly string[]
  readonly env?: readonly { name: string; value?: string; valueFrom?: object }[]
  readonly ports?: readonly { name: string; containerPort: number }[]
  readonly volumeMounts?: readonly { name: string; mountPath: string; subPath?: string }[]
  readonly securityContext?: Readonly<Record<string, unknown>>
  readonly lifecycle?: { readonly preStop?: Readonly<Record<string, unknown>> }
  readonly resources?: { readonly requests?: Readonly<Record<string, string | number>> }
}

/** The fields of a volume that tests read. */
interface Volume {
  readonly name: string
  readonly secret?: { secretName: string; items?: readonly { key: string; path: string }[] }
  readonly configMap?: { name: string }
}

/** The fields of a pod that tests read. */
interface PodSpec {
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes?: readonly Volume[]
  readonly securityContext?: Readonly<Record<string, unknown>>
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly terminationGracePeriodSeconds?: number
}

/** Values of the chart, as a user sets them. */
export type GivenValues = Readonly<Record<string, unknown>>

/** The Helm version, the chart, the values and the release to render. */
export interface RenderOptions {
  readonly major: HelmMajor
  /** The folder of the chart, by default `chartFolder`. */
  readonly chart?: string
  readonly values?: GivenValues
  /** Values files in the folder of the chart. */
  readonly files?: readonly string[]
  readonly release?: string
  /** The namespace of the release, by default `store`. */
  readonly namespace?: string
  /** APIs of the cluster, besides those of Kubernetes. */
  readonly apiVersions?: readonly string[]
}

/** The image that every rendering requires. */
export const someImage = { repository: 'registry.example.com/curtail' }

/** The result of `helm template`. */
export interface Rendering {
  readonly exitCode: number
  readonly manifests: string
  readonly error: string
}

/** Runs `helm template` with values on its standard input. */
export async function tryRender(options: RenderOptions): Promise<Rendering> {
  const helm = await findHelm(options.major)
  const { release = 'shop', chart = chartFolder, values = {}, files = [] } = options
  const namespace = options.namespace ?? 'store'
  const apis = (options.apiVersions ?? []).flatMap((api) => ['--api-versions', api])
  const given = [...apis, ...files.flatMap((file) => ['--values', `${chart}/${file}`])]
  const args = ['template', release, chart, '--namespace', namespace, ...given, '--values', '-']
  return new Promise((resolve) => {
    const bounds = { timeout: RENDER_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }
    const child = execFile(helm, args, bounds, (error, manifests, message) => {
      const exitCode = error === null ? 0 : Number(error.code ?? 1)
      resolve({ exitCode, manifests, error: message })
    })
    child.stdin?.on('error', () => undefined) // the exit code reports the failure
    child.stdin?.end(JSON.stringify(values))
  })
}

/** Renders the manifests as YAML. Throws Helm's error. */
export async function renderManifests(options: RenderOptions): Promise<string> {
  const values = { image: someImage, ...options.values }
  const { exitCode, manifests, error } = await tryRender({ ...options, values })
  if (exitCode !== 0) throw new Error(`helm ${options.major} template: ${error}`)
  return manifests
}

/** Parses the objects of manifests. Throws if they are not YAML. */
export function parseObjects(manifests: string): readonly KubeObject[] {
  return parseAllDocuments(manifests, { version: '1.1' }).flatMap((document) => {
    const [error] = document.errors
    if (error !== undefined) throw error
    const object = document.toJS() as KubeObject | null
    return object === null ? [] : [object]
  })
}

/** Renders and parses the objects. Throws Helm's error. */
export async function renderChart(options: RenderOptions): Promise<readonly KubeObject[]> {
  return parseObjects(await renderManifests(options))
}

/** The object of this kind and name. Throws if it does not exist. */
export function objectOf(objects: readonly KubeObject[], kind: string, name: string): KubeObject {
  const found = objects.find((one) => one.kind === kind && one.metadata.name === name)
  if (found === undefined) throw new Error(`no ${kind} ${name} is rendered`)
  return found
}

/** The specification of a pod, and its number of replicas. */
export interface FoundPod {
  readonly of: KubeObject
  readonly spec: PodSpec
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly replicas: number
}

interface PodTemplate {
  readonly metadata?: KubeObject['metadata']
  readonly spec: PodSpec
}

/** Every pod that the objects would start, including those of the controller's refill Jobs. */
export function podsOf(objects: readonly KubeObject[]): readonly FoundPod[] {
  return [...objects, ...refillJobsOf(objects)].flatMap((object) => {
    const template = templateOf(object)
    if (template === undefined) return []
    const { labels = {}, annotations = {} } = template.metadata ?? {}
    const replicas = Number(object.spec?.['replicas'] ?? 1)
    return [{ of: object, spec: template.spec, labels, annotations, replicas }]
  })
}

/** The Job that the controller creates for each CodePool, from the rendered pod template. */
export function refillJobsOf(objects: readonly KubeObject[]): readonly KubeObject[] {
  const config = objects.find(({ data }) => data?.['pod.yaml'] !== undefined)
  const podTemplate = config?.data?.['pod.yaml'] ?? ''
  const pools = objects.filter(({ kind }) => kind === 'CodePool')
  return pools.map((pool) => {
    const template = parseTemplate(podTemplate)
    if (isProblem(template)) throw new Error(template.message)
    const { storeName = '', target } = (pool as unknown as CodePool).spec
    const given = { template, storeName, refill: 1, fillTo: target }
    return renderJob(pool as unknown as CodePool, given)
  })
}

function templateOf(object: KubeObject): PodTemplate | undefined {
  const spec = object.spec ?? {}
  if (object.kind === 'Pod') {
    return { metadata: object.metadata, spec: spec as unknown as PodSpec }
  }
  if (object.kind === 'CronJob') {
    return (spec['jobTemplate'] as { spec: { template: PodTemplate } }).spec.template
  }
  if (['Deployment', 'StatefulSet', 'Job'].includes(object.kind)) {
    return spec['template'] as PodTemplate
  }
  return undefined
}

/** Every container of a pod, including init containers. */
export function containersOf({ spec }: FoundPod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers]
}
