// Renders values.schema.json and README.md of a chart from values.yaml. Does no file I/O.
import { format } from 'prettier'
import { readValues, type Value } from './read-values.ts'
import { closed, type Schema, valueShapes } from './value-shapes.ts'

/** The contents of the rendered files. */
export interface RenderedValues {
  readonly schema: string
  readonly readme: string
}

const STYLE = { printWidth: 100 }

/**
 * Renders both files of the chart `name`; `intro` is the Markdown below the README's title. Throws
 * if values.yaml is invalid.
 */
export async function renderValues(
  valuesYaml: string,
  { name, intro }: { readonly name: string; readonly intro: string },
): Promise<RenderedValues> {
  const values = readValues(valuesYaml)
  const shapes = shapesOf(values)
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: `Values of the chart ${name}`,
    ...closed(propertiesOf(values)),
    definitions: shapes,
  }
  const readme = `# Values of the chart ${name}\n${intro}${renderReadme(values, shapes)}`
  return {
    schema: await format(JSON.stringify(schema), { parser: 'json', ...STYLE }),
    readme: await format(readme, { parser: 'markdown', ...STYLE }),
  }
}

/** The shapes to which values refer: shared ones, and those defined by values. */
function shapesOf(values: readonly Value[]): Record<string, Schema> {
  const defined = values.flatMap(({ schema, children }) =>
    typeof schema['definition'] === 'string' && children !== undefined
      ? [[schema['definition'], closed(propertiesOf(children))] as const]
      : [],
  )
  const shapes = { ...valueShapes, ...Object.fromEntries(defined) }
  const references = JSON.stringify(propertiesOf(values)) + JSON.stringify(defined)
  return Object.fromEntries(
    Object.entries(shapes).filter(([name]) => references.includes(`"#/definitions/${name}"`)),
  )
}

function propertiesOf(values: readonly Value[]): Record<string, Schema> {
  return Object.fromEntries(
    values.map((value) => [value.path.split('.').at(-1) ?? '', schemaOf(value)]),
  )
}

function schemaOf({ about, schema, children }: Value): Schema {
  const description = about === '' ? {} : { description: about }
  const { definition, ...rest } = schema
  if (typeof definition === 'string') return { ...description, $ref: `#/definitions/${definition}` }
  if (children === undefined) return { ...description, ...rest }
  return { ...description, ...closed(propertiesOf(children)), ...rest }
}

function renderReadme(values: readonly Value[], shapes: Record<string, Schema>): string {
  const single = values.filter(({ children }) => children === undefined)
  const sections = values.flatMap((value) =>
    value.children === undefined
      ? []
      : [`\n## ${value.path}\n\n${value.about}\n\n${renderTable(leavesOf(value.children))}`],
  )
  const named = Object.entries(shapes).map(
    ([name, shape]) => `- <a id="${name}"></a>**${name}**: ${allowedOf(shape)}\n`,
  )
  const last = `\n## Types\n\n${named.join('')}`
  return [`\n## General\n\n${renderTable(single)}`, ...sections, last].join('')
}

function leavesOf(values: readonly Value[]): Value[] {
  return values.flatMap((value) =>
    value.children === undefined ? [value] : leavesOf(value.children),
  )
}

function renderTable(values: readonly Value[]): string {
  const rows = values.map(({ path, about, schema, fallback }) =>
    [`\`${path}\``, `\`${JSON.stringify(fallback)}\``, allowedOf(schema), about]
      .map((cell) => cell.replaceAll('|', '\\|'))
      .join(' | '),
  )
  const header = ['value | default | allowed | meaning', '--- | --- | --- | ---']
  return `${[...header, ...rows].map((row) => `| ${row} |`).join('\n')}\n`
}

/** Describes the allowed values of a schema. */
function allowedOf(schema: Schema): string {
  const { $ref, type, minimum, maximum, pattern, items, properties } = schema
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? ''
    return `[${name}](#${name})`
  }
  if (Array.isArray(schema['enum'])) return schema['enum'].map((one) => `\`${one}\``).join(', ')
  const kind = Array.isArray(type) ? type.join(' or ') : String(type)
  if (typeof pattern === 'string') return `${kind} matching \`${pattern}\``
  if (/^(integer|number)/.test(kind)) {
    const min = typeof minimum === 'number' ? minimum : 0
    return `${kind}, ${typeof maximum === 'number' ? `${min} to ${maximum}` : `${min} or more`}`
  }
  if (typeof items === 'object') return `list of ${allowedOf(items as Schema)}`
  if (typeof properties === 'object') return membersOf(properties as Record<string, Schema>)
  const inner = schema['additionalProperties']
  if (typeof inner === 'object') return `object of ${allowedOf(inner as Schema)}`
  return kind
}

function membersOf(properties: Record<string, Schema>): string {
  const members = Object.entries(properties).map(
    ([name, schema]) => `\`${name}\` (${allowedOf(schema)})`,
  )
  return `object with ${members.join(', ')}`
}
