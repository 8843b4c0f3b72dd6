// The CRD of CodePools as a strict schema for kubeconform: the fields and their bounds, without the
// CEL rules, which only an API server evaluates.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'

const CRD = 'charts/curtail-crds/templates/codepools.yaml'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly [more: string]: unknown
}

/**
 * Writes the schema to the path that `schemaLocation` (kubernetes-schemas.ts) sets for `folder`.
 */
export async function writeCodePoolSchema(folder: string): Promise<void> {
  const { spec } = parse(await readFile(CRD, 'utf8')) as {
    spec: { group: string; versions: { name: string; schema: { openAPIV3Schema: Schema } }[] }
  }
  await mkdir(join(folder, spec.group))
  for (const { name, schema } of spec.versions) {
    const strict = JSON.stringify(rejectUnknownFields(schema.openAPIV3Schema))
    await writeFile(join(folder, spec.group, `codepool-${name}.json`), strict)
  }
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
