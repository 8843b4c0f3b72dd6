// Reads values.yaml as a list of values: each with its path, default, comment and what is allowed.
// Knows nothing of Helm, and writes nothing.
import { isMap, isScalar, parse, parseDocument, type Pair, type YAMLMap } from 'yaml'
import type { Schema } from './value-shapes.ts'

/** One value of the chart. */
export interface Value {
  /** Such as `edge.tls.enabled`. */
  readonly path: string
  readonly about: string
  /** What the annotation and the default say that is allowed. */
  readonly schema: Schema
  readonly fallback: unknown
  /** The values below it; `undefined` where it is given whole. */
  readonly below: readonly Value[] | undefined
}

const ANNOTATION = '@schema '

/** The values in the order of the file. Throws a sentence with the path of what cannot be read. */
export function readValues(text: string): readonly Value[] {
  const document = parseDocument(text)
  const [fault] = document.errors
  if (fault !== undefined) throw fault
  if (!isMap(document.contents)) throw new Error('values.yaml must hold a map')
  return readMap(document.contents, '')
}

function readMap(map: YAMLMap, path: string): Value[] {
  return map.items.map((pair, place) => {
    const inherited = place === 0 ? map.commentBefore : undefined // where `yaml` puts the first one
    return readPair(pair, { path, inherited: inherited ?? undefined })
  })
}

function readPair(
  { key, value }: Pair,
  { path, inherited }: { path: string; inherited: string | undefined },
): Value {
  if (!isScalar(key)) throw new Error(`a key below ${path} is no text`)
  const name = String(key.value)
  const here = path === '' ? name : `${path}.${name}`
  const { about, annotation } = readComment(key.commentBefore ?? inherited ?? '')
  const fallback: unknown = (value as { toJSON(): unknown } | null)?.toJSON() ?? null
  const isBranch = isMap(value) && value.items.length > 0 && !('$ref' in annotation)
  const below = isBranch ? readMap(value, here) : undefined
  const schema = { ...typeOf(fallback, annotation, here), ...annotation }
  return { path: here, about, schema, fallback, below }
}

function readComment(comment: string): { about: string; annotation: Schema } {
  const paragraph = comment.split(/\n *\n/).at(-1) ?? '' // above it, the head of the file
  const lines = paragraph.split('\n').map((line) => line.trim())
  const notes = lines.filter((line) => line.startsWith(ANNOTATION))
  const words = lines.filter((line) => !line.startsWith(ANNOTATION))
  const annotation: unknown = notes.length === 0 ? {} : parse(notes[0]?.slice(8) ?? '')
  return { about: words.join(' ').trim(), annotation: annotation as Schema }
}

/** The type that a default shows. Throws where it shows none and the annotation does not either. */
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
  throw new Error(`${path} of values.yaml must say what is allowed, in a line with ${ANNOTATION}`)
}
