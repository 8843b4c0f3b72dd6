// The dependency `kubernetes-schemas`: the schema of every kind from our test cluster's API server,
// as strict schemas that kubeconform reads. Comes from the file that Kubernetes publishes with its
// sources, so that charts can be checked where no cluster runs.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'

const FETCH_MS_MAX = 300_000

/** The version of Kubernetes that tests run on; k8s/cluster/go/go.mod names it too. */
export const KUBERNETES_VERSION = '1.34.10'
/** The Go module that builds Kubernetes, and pins it. */
export const kubernetesModule = fileURLToPath(new URL('../../k8s/cluster/go', import.meta.url))

/** A JSON schema as the API server writes it; what is not named here is taken over as it is. */
interface Schema {
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

/** Folder of the schemas, created first if it does not exist. Throws the reason. */
export async function findKubernetesSchemas(): Promise<string> {
  return cachedDependency(`kubernetes-schemas-${KUBERNETES_VERSION}`, async (into) => {
    const args = ['mod', 'download', '-json', 'k8s.io/kubernetes']
    const told = await runGo(args, { cwd: kubernetesModule, msMax: FETCH_MS_MAX })
    const { Dir, Version } = JSON.parse(told) as { Dir: string; Version: string }
    if (Version !== `v${KUBERNETES_VERSION}`) throw new Error(`go.mod pins Kubernetes ${Version}`)
    const text = await readFile(join(Dir, 'api', 'openapi-spec', 'swagger.json'), 'utf8')
    await writeSchemas(JSON.parse(text) as OpenApi, into)
  })
}

/** Writes the schemas of every kind that `api` knows, custom resources too. */
async function writeSchemas(api: OpenApi, folder: string): Promise<void> {
  for (const [path, text] of renderSchemas(api)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
}

/** Files of schemas by path: one of all definitions, and one for each kind that leads there. */
function renderSchemas(api: OpenApi): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  const closed = Object.entries(api.definitions).map(
    ([name, schema]) => [name, widenScalar(name, closeSchema(schema))] as const,
  )
  for (const [name, schema] of closed) {
    if (schema.properties?.['metadata'] === undefined) continue // options, events of watches
    for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? []) {
      // kubeconform takes the version for the group where a kind has none.
      const path = `${group === '' ? version : group}/${kind.toLowerCase()}-${version}.json`
      files.set(path, JSON.stringify({ $ref: `../definitions.json#/definitions/${name}` }))
    }
  }
  files.set('definitions.json', JSON.stringify({ definitions: Object.fromEntries(closed) }))
  return files
}

/** The schema with every object of named fields closed: another field is a fault. */
function closeSchema(schema: Schema): Schema {
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

/** Two kinds of value are described more narrowly than the API server reads them. */
function widenScalar(name: string, schema: Schema): Schema {
  if (name.endsWith('.util.intstr.IntOrString')) return { type: ['string', 'integer'] }
  if (name.endsWith('.api.resource.Quantity')) return { type: ['string', 'number'] }
  return schema
}
