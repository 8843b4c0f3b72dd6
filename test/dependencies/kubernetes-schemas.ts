// The dependency `kubernetes-schemas`: a strict schema for kubeconform of every kind of Kubernetes,
// in the version of the test cluster. Its source is the OpenAPI file in the sources of Kubernetes,
// so that no cluster is needed.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'

const FETCH_MS_MAX = 300_000

/** The version of Kubernetes in tests; k8s/cluster/go/go.mod contains it too. */
export const KUBERNETES_VERSION = '1.34.10'
/** The Go module that pins and builds Kubernetes. */
export const kubernetesModule = fileURLToPath(new URL('../../k8s/cluster/go', import.meta.url))

/** A JSON schema of the API server; other fields are copied unchanged. */
export interface Schema {
  type?: string | readonly string[]
  format?: string
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string
    readonly version: string
    readonly kind: string
  }[]
}

/** The response of an API server at /openapi/v2. */
interface OpenApi {
  readonly definitions: Readonly<Record<string, Schema>>
}

/** The `-schema-location` of kubeconform for the schemas in `folder`. */
export function schemaLocation(folder: string): string {
  return `${folder}/{{ .Group }}/{{ .ResourceKind }}-{{ .ResourceAPIVersion }}.json`
}

/** The folder of the schemas, which is created if it does not exist. Throws the reason. */
export async function findKubernetesSchemas(): Promise<string> {
  return cachedDependency(`kubernetes-schemas-${KUBERNETES_VERSION}`, async (into) => {
    const args = ['mod', 'download', '-json', 'k8s.io/kubernetes']
    const output = await runGo(args, { cwd: kubernetesModule, msMax: FETCH_MS_MAX })
    const { Dir, Version } = JSON.parse(output) as { Dir: string; Version: string }
    if (Version !== `v${KUBERNETES_VERSION}`) throw new Error(`go.mod pins Kubernetes ${Version}`)
    const openApi = await readFile(join(Dir, 'api', 'openapi-spec', 'swagger.json'), 'utf8')
    await writeSchemas(JSON.parse(openApi) as OpenApi, into)
  })
}

/** Writes the schemas of every kind in `api`. */
async function writeSchemas(api: OpenApi, folder: string): Promise<void> {
  for (const [path, schema] of renderSchemas(api)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), schema)
  }
}

/** The schema files by path: one with all definitions, and one per kind that refers to it. */
function renderSchemas(api: OpenApi): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  const closed = Object.entries(api.definitions).map(
    ([name, schema]) => [name, widenScalar(name, closeSchema(schema))] as const,
  )
  for (const [name, schema] of closed) {
    if (schema.properties?.['metadata'] === undefined) continue // such as options and watch events
    for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? []) {
      // kubeconform uses the version as the group if a kind has no group.
      const path = `${group === '' ? version : group}/${kind.toLowerCase()}-${version}.json`
      files.set(path, JSON.stringify({ $ref: `../definitions.json#/definitions/${name}` }))
    }
  }
  files.set('definitions.json', JSON.stringify({ definitions: Object.fromEntries(closed) }))
  return files
}

/** Forbids unknown fields in every object that has named fields. */
export function closeSchema(schema: Schema): Schema {
  const { properties, items, additionalProperties: rest } = schema
  const isOpen = properties === undefined || schema['x-kubernetes-preserve-unknown-fields'] === true
  const fields = Object.entries(properties ?? {})
  return {
    ...schema,
    ...(properties !== undefined && {
      properties: Object.fromEntries(fields.map(([name, field]) => [name, closeSchema(field)])),
    }),
    ...(items !== undefined && { items: closeSchema(items) }),
    ...(typeof rest === 'object' && { additionalProperties: closeSchema(rest) }),
    ...(rest === undefined && !isOpen && { additionalProperties: false }),
  }
}

/** Widens the two types for which the API server accepts more than its schema describes. */
function widenScalar(name: string, schema: Schema): Schema {
  if (name.endsWith('.util.intstr.IntOrString')) return { type: ['string', 'integer'] }
  if (name.endsWith('.api.resource.Quantity')) return { type: ['string', 'number'] }
  return schema
}
