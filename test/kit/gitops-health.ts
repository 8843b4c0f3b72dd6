// Evaluates the health checks of docs/gitops.md on an object, as Argo CD and Flux do, and reads the
// manifests of that page and of its samples.
import { readFileSync } from 'node:fs'
import { evaluate } from '@marcbachmann/cel-js'
import { LuaFactory } from 'wasmoon'
import { parseAllDocuments } from 'yaml'

interface HealthCheck {
  readonly apiVersion: string
  readonly kind: string
  readonly inProgress: string
  readonly failed: string
  readonly current: string
}
/** Of an Application: a folder in a Git repository, or a chart in a registry. */
interface Source {
  readonly repoURL: string
  readonly targetRevision: string
  readonly path?: string
  readonly chart?: string
  readonly helm?: { readonly valuesObject: object }
}
interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly healthCheckExprs?: readonly HealthCheck[]
    readonly source?: Source
    readonly chart?: { readonly spec: { readonly chart: string; readonly sourceRef: object } }
    readonly chartRef?: object
    readonly url?: string
    readonly ref?: { readonly tag: string }
    readonly layerSelector?: { readonly mediaType: string }
    readonly dependsOn?: readonly { readonly name: string }[]
    readonly values?: object
  }
}
/** The fields of an object that the health checks read. */
interface Resource {
  readonly metadata: { readonly generation?: number }
  readonly status?: { readonly observedGeneration?: number }
}

const page = readFileSync('docs/gitops.md', 'utf8')
const samples = ['argo-cd', 'flux'].map((name) => readFileSync(`k8s/samples/${name}.yaml`, 'utf8'))
/** The blocks of the page, each with one or more manifests. */
export const pageBlocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => block)
const manifests = [...pageBlocks, ...samples].flatMap((source) =>
  parseAllDocuments(source).map((document) => document.toJS() as Manifest),
)
/** The manifests of one kind, in the page and its samples. */
export const ofKind = (kind: string): readonly Manifest[] =>
  manifests.filter((manifest) => manifest.kind === kind)

/** The health that Argo CD shows, and its message. */
export async function healthInArgo(
  kind: string,
  object: Resource,
): Promise<{ status: string; message: string }> {
  const script =
    ofKind('ConfigMap')[0]?.data?.[`resource.customizations.health.curtail.dev_${kind}`]
  if (script === undefined) throw new Error(`there is no health check for ${kind}`)
  // Without proxies, arrays become tables, as in Argo CD.
  const engine = await new LuaFactory().createEngine({ enableProxy: false })
  try {
    engine.global.set('obj', object)
    return engine.doStringSync(script) as { status: string; message: string }
  } finally {
    engine.global.close()
  }
}

/** The status that Flux computes, in the order of its status evaluator. */
export function statusInFlux(kind: string, { metadata, status }: Resource): string {
  const checks = ofKind('Kustomization')[0]?.spec?.healthCheckExprs ?? []
  const check = checks.find((one) => one.kind === kind)
  if (check === undefined) throw new Error(`there is no health check for ${kind}`)
  if (status === undefined) return 'InProgress' // the expressions refer to a missing field
  const observed = status.observedGeneration
  if (observed !== undefined && observed !== metadata.generation) return 'InProgress'
  const isTrue = (expression: string) => evaluate(expression, { metadata, status }) === true
  if (isTrue(check.inProgress)) return 'InProgress'
  if (isTrue(check.failed)) return 'Failed'
  return isTrue(check.current) ? 'Current' : 'InProgress'
}
