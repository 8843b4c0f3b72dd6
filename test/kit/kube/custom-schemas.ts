// The CRDs as strict schemas for kubeconform: the fields and their bounds, without the CEL rules,
// which only an API server evaluates.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'

const CRDS = ['codepools', 'ratelimitpolicies']

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly [more: string]: unknown
}

/**
 * Writes the schemas to the paths that `schemaLocation` (kubernetes-schemas.ts) sets for `folder`.
 */
export async function writeCustomSchemas(folder: string): Promise<void> {
  for (const crd of CRDS) {
    const file = `charts/curtail-crds/templates/${crd}.yaml`
    const { spec } = parse(await readFile(file, 'utf8')) as { readonly spec: CrdSpec }
    await mkdir(join(folder, spec.group), { recursive: true })
    for (const { name, schema } of spec.versions) {
      const strict = JSON.stringify(rejectUnknownFields(schema.openAPIV3Schema))
      await writeFile(join(folder, spec.group, `${spec.names.singular}-${name}.json`), strict)
    }
  }
}

interface CrdSpec {
  readonly group: string
  readonly names: { readonly singular: string }
  readonly versions: { name: string; schema: { openAPIV3Schema: Schema } }[]
}

/** Forbids unknown fields in every object that has named fields. */
function rejectUnknownFields(schema: Schema): Schema {
  const { properties } = schema
  if (properties === undefined) return schema
  const fields = Object.entries(properties).map(
    ([name, field]) => [name, rejectUnknownFields(field)] as const,
  )
  return { ...schema, properties: Object.fromEntries(fields), additionalProperties: false }
}
