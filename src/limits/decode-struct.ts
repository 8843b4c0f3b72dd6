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

/** The position of a node in a message. */
export interface Position {
  /** A number that identifies the node in faults, because a message has no lines. */
  readonly line: number
  readonly depth: number
}

/** The state of decoding one resource. */
export interface ConfigDecoding {
  readonly reader: WireReader
  readonly paths: NodePaths
  readonly diagnostics: Diagnostics
  /** How many more items may be decoded. */
  readonly left: {
    descriptors: number
    /** Values of Structs. */
    values: number
  }
}

/** Maximum number of values in all Structs of a resource: 5 for each of 100,000 descriptors. */
export const STRUCT_VALUES_MAX = 500_000
/** Maximum depth of nested messages. */
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

/** A string or a null. */
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

/** A Struct whose occurrences are being read: they merge, and the last value of a key counts. */
export interface OpenStruct {
  readonly at: Position
  readonly values: Map<string, YamlNode>
}

/** Starts the Struct in the field `name` of the message at `parent`. */
export function openStruct(
  decoding: ConfigDecoding,
  parent: Position,
  name: string | number,
): OpenStruct {
  return { at: openNode(decoding, parent, name), values: new Map() }
}

/** The position of a new node below `parent`. */
function openNode(
  { reader, paths }: ConfigDecoding,
  parent: Position,
  name: string | number,
): Position {
  const at = { line: paths.add(parent.line, name), depth: parent.depth + 1 }
  checkDepth(reader, at.depth)
  return at
}

/** Reads one occurrence of a Struct. */
export function readStruct(decoding: ConfigDecoding, struct: OpenStruct): void {
  const { reader } = decoding
  const end = reader.endOfField()
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === STRUCT_FIELDS) readEntry(decoding, struct)
    else reader.skip(tag)
  }
  reader.finish(end)
}

/** The mapping of a Struct whose occurrences have all been read. */
export function structNode({ at, values }: OpenStruct): MapNode {
  return mapNode(
    at,
    [...values].map(([key, value]) => ({ key: keyNode(key, at.line), value })),
  )
}

function readEntry(decoding: ConfigDecoding, { at, values }: OpenStruct): void {
  const { reader } = decoding
  countValue(decoding)
  const end = reader.endOfField()
  let key = ''
  const valuesAt: number[] = []
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === ENTRY_KEY) key = reader.string()
    else if (tag === ENTRY_VALUE) {
      valuesAt.push(reader.at)
      reader.delimited()
    } else reader.skip(tag)
  }
  reader.finish(end)
  const value: OpenValue = { scalar: scalarNode('null', '', at) }
  for (const valueAt of valuesAt) {
    reader.at = valueAt // after the key, because the path of the value contains it
    readValue(decoding, { parent: at, name: key, value })
  }
  reader.at = end
  values.set(key, valueNode(value))
}

/** A Value whose occurrences are being read. Structs and lists merge; the last scalar counts. */
interface OpenValue {
  scalar: YamlNode
  struct?: OpenStruct | undefined
  list?: OpenList | undefined
}

interface OpenList {
  readonly at: Position
  readonly items: YamlNode[]
}

function valueNode({ scalar, struct, list }: OpenValue): YamlNode {
  if (struct !== undefined) return structNode(struct)
  if (list === undefined) return scalar
  return { kind: 'list', line: list.at.line, items: list.items, depth: 1 }
}

function readValue(
  decoding: ConfigDecoding,
  given: { readonly parent: Position; readonly name: string | number; readonly value: OpenValue },
): void {
  const { reader } = decoding
  const { parent: at, name, value } = given
  const end = reader.endOfField()
  const setScalar = (scalar: YamlNode) => {
    Object.assign(value, { scalar, struct: undefined, list: undefined })
  }
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === VALUE_STRING) setScalar(scalarNode('string', reader.string(), at))
    else if (tag === VALUE_NUMBER) setScalar(numberNode(reader.double(), at))
    else if (tag === VALUE_BOOL) setScalar(boolNode(reader.bool(), at))
    else if (tag === VALUE_STRUCT) {
      value.list = undefined
      value.struct ??= openStruct(decoding, at, name)
      readStruct(decoding, value.struct)
    } else if (tag === VALUE_LIST) {
      value.struct = undefined
      value.list ??= { at: openNode(decoding, at, name), items: [] }
      readList(decoding, value.list)
    } else {
      if (tag === VALUE_NULL) setScalar(scalarNode('null', '', at))
      reader.skip(tag)
    }
  }
  reader.finish(end)
}

function readList(decoding: ConfigDecoding, { at, items }: OpenList): void {
  const { reader } = decoding
  const end = reader.endOfField()
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === LIST_VALUES) {
      countValue(decoding)
      const value: OpenValue = { scalar: scalarNode('null', '', at) }
      readValue(decoding, { parent: at, name: items.length, value })
      items.push(valueNode(value))
    } else reader.skip(tag)
  }
  reader.finish(end)
}

/** A scalar of a number. */
export function numberNode(value: number, { line }: Position): YamlNode {
  const kind = Number.isSafeInteger(value) ? 'int' : 'float'
  return { kind, text: String(value), value, line, depth: 0 }
}

/** A scalar of a boolean. */
export function boolNode(value: boolean, { line }: Position): YamlNode {
  return { kind: 'bool', text: String(value), value, line, depth: 0 }
}
