// The definition of CodePools as a strict schema for kubeconform: it holds fields and their bounds,
// and not the rules in CEL, which only an API server knows.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'

const CRD = 'charts/curtail-crds/templates/codepools.yaml'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly [more: string]: unknown
}

/** Writes it where `schemaLocation` of test/parts/kubernetes-schemas.ts looks in `folder`. */
export async function writeCodePoolSchema(folder: string): Promise<void> {
  const { spec } = parse(await readFile(CRD, 'utf8')) as {
    spec: { group: string; versions: { name: string; schema: { openAPIV3Schema: Schema } }[] }
  }
  await mkdir(join(folder, spec.group))
  for (const { name, schema } of spec.versions) {
    const text = JSON.stringify(closed(schema.openAPIV3Schema))
    await writeFile(join(folder, spec.group, `codepool-${name}.json`), text)
  }
}

/** With every object of named fields closed: another field is a fault. */
function closed(schema: Schema): Schema {
  const { properties } = schema
  if (properties === undefined) return schema
  const fields = Object.entries(properties).map(([name, field]) => [name, closed(field)] as const)
  return { ...schema, properties: Object.fromEntries(fields), additionalProperties: false }
}
