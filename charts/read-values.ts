// Parses values.yaml into a list of values: path, default, comment and schema. Independent of Helm;
// writes nothing.
import { isMap, isScalar, parse, parseDocument, type Pair, type YAMLMap } from 'yaml'
import type { Schema } from './value-shapes.ts'

/** One value of the chart. */
export interface Value {
  /** Such as `edge.tls.enabled`. */
  readonly path: string
  readonly about: string
  /** The schema from the annotation and the default. */
  readonly schema: Schema
  readonly fallback: unknown
  /** Nested values; `undefined` for a leaf. */
  readonly children: readonly Value[] | undefined
}

const ANNOTATION = '@schema '

/** Returns the values in file order. Throws an error with the path of an invalid value. */
export function readValues(source: string): readonly Value[] {
  const document = parseDocument(source)
  const [error] = document.errors
  if (error !== undefined) throw error
  if (!isMap(document.contents))
    throw new Error('Cannot read values.yaml: it must contain a mapping')
  return readMap(document.contents, '')
}

function readMap(map: YAMLMap, path: string): Value[] {
  return map.items.map((pair, index) => {
    // `yaml` attaches the first comment to the map.
    const inherited = index === 0 ? map.commentBefore : undefined
    return readPair(pair, { path, inherited: inherited ?? undefined })
  })
}

function readPair(
  { key, value }: Pair,
  { path, inherited }: { path: string; inherited: string | undefined },
): Value {
  if (!isScalar(key)) throw new Error(`Cannot read values.yaml: a key of ${path} is not a scalar`)
  const name = String(key.value)
  const valuePath = path === '' ? name : `${path}.${name}`
  const { about, annotation } = readComment(key.commentBefore ?? inherited ?? '')
  const fallback: unknown = (value as { toJSON(): unknown } | null)?.toJSON() ?? null
  const isBranch = isMap(value) && value.items.length > 0 && !('$ref' in annotation)
  const children = isBranch ? readMap(value, valuePath) : undefined
  const schema = { ...typeOf(fallback, annotation, valuePath), ...annotation }
  return { path: valuePath, about, schema, fallback, children }
}

function readComment(comment: string): { about: string; annotation: Schema } {
  const paragraph = comment.split(/\n *\n/).at(-1) ?? '' // the file header is above it
  const lines = paragraph.split('\n').map((line) => line.trim())
  const annotations = lines.filter((line) => line.startsWith(ANNOTATION))
  const description = lines.filter((line) => !line.startsWith(ANNOTATION))
  const annotation: unknown = annotations.length === 0 ? {} : parse(annotations[0]?.slice(8) ?? '')
  return { about: description.join(' ').trim(), annotation: annotation as Schema }
}

/** Infers the type from the default. Throws if neither default nor annotation defines one. */
function typeOf(fallback: unknown, annotation: Schema, path: string): Schema {
  if ('$ref' in annotation) return {}
  if (Array.isArray(fallback)) {
    if ('items' in annotation) return { type: 'array' }
  } else if (typeof fallback === 'object' && fallback !== null) {
    const isOpen = Object.keys(fallback).length === 0 && !('type' in annotation)
    if (!isOpen) return { type: 'object' }
  } else if (typeof fallback === 'boolean') return { type: 'boolean' }
  else if (typeof fallback === 'number') return { type: 'integer', minimum: 0 }
  else if (typeof fallback === 'string') {
    const isAnnotated = ['pattern', 'enum', 'type'].some((word) => word in annotation)
    if (isAnnotated) return { type: 'string' }
  }
  throw new Error(
    `Cannot read ${path} of values.yaml: a line with ${ANNOTATION}must define the allowed values`,
  )
}
