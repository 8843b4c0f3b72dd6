// Decodes google.protobuf.Struct into the tree that a YAML file has, and names the nodes of a
// message by their paths. Independent of rules.
import {
  STRUCT_FIELDS,
  ENTRY_KEY,
  ENTRY_VALUE,
  VALUE_NULL,
  VALUE_NUMBER,
  VALUE_STRING,
  VALUE_BOOL,
  VALUE_STRUCT,
  VALUE_LIST,
  LIST_VALUES,
} from '../protobuf/struct-tags.ts'
import type { WireReader } from '../protobuf/wire-reader.ts'
import type { YamlMap, YamlNode } from './parse-yaml.ts'
import type { Diagnostics } from './rule-fault.ts'

/** A mapping. */
export type MapNode = YamlMap

/** A scalar. */
type ScalarNode = Exclude<YamlNode, { readonly kind: 'map' | 'list' }>

/** The number of a node, and its depth in the message. */
export interface Position {
  readonly line: number
  readonly depth: number
}

/** The state of decoding one resource. */
export interface ConfigDecoding {
  readonly reader: WireReader
  readonly paths: NodePaths
  readonly diagnostics: Diagnostics
  /** How many more descriptors are decoded. */
  readonly left: {
    descriptors: number
    /** How many more values of Structs are decoded. */
    values: number
  }
}

/** Maximum number of values in all Structs of a resource: 5 for each of 100,000 descriptors. */
export const STRUCT_VALUES_MAX = 500_000
/** Maximum number of nested messages. */
const DEPTH_MAX = 100
/** Maximum length of a name in a path. */
const STEP_LENGTH_MAX = 100
const identifier = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/

/** The paths of nodes by their numbers; the root has number 1. Rendered only for faults. */
export class NodePaths {
  readonly #parents: number[] = [0, 0]
  readonly #steps: (string | number)[] = ['', '']

  /** Adds a node below `parent`: a field, or an item of a list. Returns its number. */
  add(parent: number, step: string | number): number {
    this.#parents.push(parent)
    return this.#steps.push(step) - 1
  }

  /** The path of a node, such as `descriptors[3].rate_limit`; empty for the root. */
  render(line: number): string {
    let path = ''
    for (let at = line; at > 1; at = this.#parents[at] ?? 0) {
      path = renderStep(this.#steps[at] ?? '') + path
    }
    return path.replace(/^\./, '')
  }
}

function renderStep(step: string | number): string {
  if (typeof step === 'number') return `[${step}]`
  if (identifier.test(step)) return `.${step}`
  return `[${JSON.stringify(step.slice(0, STEP_LENGTH_MAX))}]`
}

const keyNodes = new Map<string, ScalarNode>()
const KEY_NODES_MAX = 100

/** The node of a field's name. */
export function keyNode(name: string, line = 1): ScalarNode {
  const known = line === 1 ? keyNodes.get(name) : undefined
  if (known !== undefined) return known
  const node = scalarNode('string', name, { line })
  if (line === 1 && keyNodes.size < KEY_NODES_MAX) keyNodes.set(name, node)
  return node
}

/** A scalar without a value of its own. */
export function scalarNode(
  kind: 'string' | 'null',
  text: string,
  { line }: { readonly line: number },
): ScalarNode {
  return { kind, text, value: undefined, line, depth: 0 }
}

/** A mapping. */
export function mapNode({ line }: Position, entries: MapNode['entries']): MapNode {
  return { kind: 'map', line, entries, depth: 1 }
}

/** Throws WireError if messages are nested too deep. */
export function checkDepth(reader: WireReader, depth: number): void {
  if (depth > DEPTH_MAX) reader.fail(`messages are nested more than ${DEPTH_MAX} levels deep`)
}

function countValue({ reader, left }: ConfigDecoding): void {
  left.values -= 1
  if (left.values < 0) reader.fail(`metadata has more than ${STRUCT_VALUES_MAX} values`)
}

/** Reads the Struct in the field `name` of the message at `parent`. */
export function readStruct(
  decoding: ConfigDecoding,
  parent: Position,
  name: string | number,
): MapNode {
  const { reader, paths } = decoding
  const at = { line: paths.add(parent.line, name), depth: parent.depth + 1 }
  checkDepth(reader, at.depth)
  const end = reader.endOfField()
  const values = new Map<string, YamlNode>()
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === STRUCT_FIELDS) readEntry(decoding, at, values)
    else reader.skip(tag)
  }
  reader.finish(end)
  return mapNode(
    at,
    [...values].map(([key, value]) => ({ key: keyNode(key, at.line), value })),
  )
}

function readEntry(decoding: ConfigDecoding, at: Position, values: Map<string, YamlNode>): void {
  const { reader } = decoding
  countValue(decoding)
  const end = reader.endOfField()
  let key = ''
  let valueAt: number | undefined
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === ENTRY_KEY) key = reader.string()
    else if (tag === ENTRY_VALUE) {
      valueAt = reader.at
      reader.delimited()
    } else reader.skip(tag)
  }
  reader.finish(end)
  if (valueAt === undefined) {
    values.set(key, scalarNode('null', '', at))
    return
  }
  reader.at = valueAt // after the key, because the path of the value contains it
  values.set(key, readValue(decoding, at, key))
  reader.at = end
}

function readValue(decoding: ConfigDecoding, at: Position, name: string | number): YamlNode {
  const { reader } = decoding
  const end = reader.endOfField()
  let value: YamlNode = scalarNode('null', '', at)
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === VALUE_STRING) value = scalarNode('string', reader.string(), at)
    else if (tag === VALUE_NUMBER) value = numberNode(reader.double(), at)
    else if (tag === VALUE_BOOL) value = boolNode(reader.bool(), at)
    else if (tag === VALUE_STRUCT) value = readStruct(decoding, at, name)
    else if (tag === VALUE_LIST) value = readList(decoding, at, name)
    else {
      if (tag === VALUE_NULL) value = scalarNode('null', '', at)
      reader.skip(tag)
    }
  }
  reader.finish(end)
  return value
}

function readList(decoding: ConfigDecoding, parent: Position, name: string | number): YamlNode {
  const { reader, paths } = decoding
  const at = { line: paths.add(parent.line, name), depth: parent.depth + 1 }
  checkDepth(reader, at.depth)
  const end = reader.endOfField()
  const items: YamlNode[] = []
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === LIST_VALUES) {
      countValue(decoding)
      items.push(readValue(decoding, at, items.length))
    } else reader.skip(tag)
  }
  reader.finish(end)
  return { kind: 'list', line: at.line, items, depth: 1 }
}

function numberNode(value: number, { line }: Position): YamlNode {
  const kind = Number.isSafeInteger(value) ? 'int' : 'float'
  return { kind, text: String(value), value, line, depth: 0 }
}

function boolNode(value: boolean, { line }: Position): YamlNode {
  return { kind: 'bool', text: String(value), value, line, depth: 0 }
}
