// Parses a YAML file into a tree with line numbers. Resolves all aliases and checks all bounds.
// Independent of rules.
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type ParsedNode,
  type YAMLMap,
} from 'yaml'
import { resolvePlain, type Scalar } from './parse-scalar.ts'
import type { Diagnostics } from './rule-fault.ts'

/** A value in a file and its line. */
export type YamlNode = YamlMap | YamlList | YamlScalar

/** A mapping with unique keys. */
export interface YamlMap {
  readonly kind: 'map'
  readonly line: number
  readonly entries: readonly YamlEntry[]
  /** Number of nested levels; always 1 if decoded from a message, whose depth is checked first. */
  readonly depth: number
}

/** A key of a mapping and its value. */
interface YamlEntry {
  readonly key: YamlNode
  readonly value: YamlNode
}

/** A list. */
interface YamlList {
  readonly kind: 'list'
  readonly line: number
  readonly items: readonly YamlNode[]
  readonly depth: number
}

/** A scalar. */
export interface YamlScalar extends Scalar {
  readonly line: number
  readonly depth: 0
}

/** Maximum size of a file in bytes. */
export const FILE_BYTES_MAX = 1024 * 1024
/** Maximum depth of nested lists and mappings, with aliases resolved. */
export const DEPTH_MAX = 100
/** Maximum number of entries that `<<` copies in one file. */
const MERGED_ENTRIES_MAX = 100_000

/** Maximum number of syntax errors that are reported for one file. */
const SYNTAX_FAULTS_MAX = 20
const tags: Readonly<Record<string, Scalar['kind']>> = {
  'tag:yaml.org,2002:str': 'string',
  'tag:yaml.org,2002:int': 'int',
  'tag:yaml.org,2002:bool': 'bool',
  'tag:yaml.org,2002:float': 'float',
  'tag:yaml.org,2002:null': 'null',
}
const collectionTags = ['tag:yaml.org,2002:map', 'tag:yaml.org,2002:seq']

/** State of the conversion of one file. */
interface Conversion {
  readonly lineAt: (position: number) => number
  readonly diagnostics: Diagnostics
  readonly anchors: Map<string, YamlNode>
  mergesLeft: number
}

/**
 * Parses one file and adds its faults to the diagnostics. `undefined` if the file is too large or
 * has syntax errors; any other fault results in an incomplete tree.
 */
export function parseYaml(text: string, diagnostics: Diagnostics): YamlNode | undefined {
  const bytes = Buffer.byteLength(text)
  if (bytes > FILE_BYTES_MAX) {
    diagnostics.fault(1, `a file must have at most ${FILE_BYTES_MAX} bytes: it has ${bytes}`)
    return undefined
  }
  const lineCounter = new LineCounter()
  const lineAt = (position: number) => Math.max(1, lineCounter.linePos(position).line)
  const parsed = parseAllDocuments(text, {
    lineCounter,
    prettyErrors: false,
    uniqueKeys: false, // takes quadratic time; checked below
    schema: 'failsafe', // resolved below, like envoyproxy/ratelimit
    resolveKnownTags: false,
    logLevel: 'error',
  })
  const [first, second] = [...parsed] as readonly (Document.Parsed | undefined)[]
  if (first === undefined) return emptyScalar(1)
  for (const error of first.errors.slice(0, SYNTAX_FAULTS_MAX)) {
    const line = lineAt(error.pos[0])
    diagnostics.fault(line, `error loading config file: ${syntaxMessage(error, line, text)}`)
  }
  if (first.errors.length > 0) return undefined
  if (second !== undefined) {
    const line = lineAt(second.range[0])
    diagnostics.warn(line, 'only the first YAML document of a file is read')
  }
  const conversion: Conversion = {
    lineAt,
    diagnostics,
    anchors: new Map(),
    mergesLeft: MERGED_ENTRIES_MAX,
  }
  return convert(first.contents, { conversion, depth: 0, line: 1 })
}

/** A syntax error of the YAML library. */
interface SyntaxFault {
  readonly code: string
  readonly message: string
  readonly pos: readonly [number, number]
}

/** The message of envoyproxy/ratelimit's parser for the most common error, else our parser's. */
function syntaxMessage(error: SyntaxFault, line: number, text: string): string {
  const isTruncated = error.code === 'MISSING_CHAR' && error.pos[0] >= text.length
  return `yaml: line ${line}: ${isTruncated ? 'found unexpected end of stream' : error.message}`
}

function emptyScalar(line: number): YamlScalar {
  return { kind: 'null', text: '', value: undefined, line, depth: 0 }
}

/** Context of a node: the conversion, its depth, and its line if it has none of its own. */
interface Context {
  readonly conversion: Conversion
  readonly depth: number
  readonly line: number
}

function convert(node: ParsedNode | null, context: Context): YamlNode {
  if (node === null) return emptyScalar(context.line)
  const line = context.conversion.lineAt(node.range[0])
  if (isAlias(node)) return resolveAlias(node, { ...context, line })
  const converted = convertContent(node, { ...context, line })
  if (node.anchor !== undefined) context.conversion.anchors.set(node.anchor, converted)
  return converted
}

function resolveAlias(node: Alias.Parsed, { conversion, line }: Context): YamlNode {
  const target = conversion.anchors.get(node.source)
  if (target !== undefined) return target
  const message = `error loading config file: yaml: line ${line}: unknown anchor '${node.source}'`
  conversion.diagnostics.fault(line, `${message} referenced`)
  return emptyScalar(line)
}

function convertContent(node: Exclude<ParsedNode, Alias.Parsed>, context: Context): YamlNode {
  const { conversion, depth, line } = context
  if (isScalar(node)) return convertScalar(node, context)
  checkTag(node.tag, context)
  if (depth >= DEPTH_MAX) return tooDeep(context)
  const within = { conversion, depth: depth + 1, line }
  if (isMap(node)) return convertMap(node, within)
  if (!isSeq(node)) return emptyScalar(line)
  const items = node.items.map((item) => convert(item, within))
  return bounded({ kind: 'list', line, items, depth: depthOf(items) }, context)
}

function checkTag(tag: string | undefined, { conversion, line }: Context): void {
  if (tag === undefined || collectionTags.includes(tag)) return
  conversion.diagnostics.fault(line, `error loading config file: the tag '${tag}' is unknown`)
}

function convertScalar(node: ParsedNode & { source?: string }, context: Context): YamlScalar {
  const { type, tag } = node as { type?: string; tag?: string }
  const text = node.source ?? ''
  const { line } = context
  const asString = { kind: 'string', text, value: undefined, line, depth: 0 } as const
  if (tag === undefined || tag === '!') {
    const isPlain = type === 'PLAIN' && tag === undefined
    return isPlain ? { ...resolvePlain(text), line, depth: 0 } : asString
  }
  const kind = tags[tag]
  if (kind === 'string') return asString
  const resolved = resolvePlain(text)
  if (kind !== undefined && resolved.kind === kind) return { ...resolved, line, depth: 0 }
  const problem = kind === undefined ? 'is unknown' : `does not match '${text}'`
  context.conversion.diagnostics.fault(
    line,
    `error loading config file: the tag '${tag}' ${problem}`,
  )
  return asString
}

function convertMap(node: YAMLMap.Parsed, context: Context): YamlNode {
  const { conversion, line } = context
  const own = new Map<string, YamlEntry>()
  const merged: YamlEntry[] = []
  for (const pair of node.items) {
    const key = convert(pair.key, context)
    const value = convert(pair.value, { ...context, line: key.line })
    if (isMergeKey(pair.key)) merged.push(...mergedEntries(value, context))
    else if (own.has(nameOf(key))) {
      conversion.diagnostics.fault(
        key.line,
        `error loading config file: duplicate key '${nameOf(key)}'`,
      )
    } else own.set(nameOf(key), { key, value })
  }
  for (const entry of merged) {
    if (!own.has(nameOf(entry.key))) own.set(nameOf(entry.key), entry)
  }
  const entries = [...own.values()]
  const depth = depthOf(entries.flatMap(({ key, value }) => [key, value]))
  return bounded({ kind: 'map', line, entries, depth }, context)
}

function isMergeKey(key: ParsedNode | null): boolean {
  return isScalar(key) && key.source === '<<' && key.type === 'PLAIN'
}

/** The entries that `<<` merges, of a mapping or a list of mappings; earlier take precedence. */
function mergedEntries(value: YamlNode, { conversion, line }: Context): readonly YamlEntry[] {
  const maps = value.kind === 'list' ? value.items : [value]
  return maps.flatMap((map) => {
    if (map.kind !== 'map') {
      conversion.diagnostics.fault(line, 'error loading config file: << must refer to a mapping')
      return []
    }
    if (conversion.mergesLeft < map.entries.length) {
      const message = `<< may merge at most ${MERGED_ENTRIES_MAX} entries in a file`
      conversion.diagnostics.fault(line, `error loading config file: ${message}`)
      return []
    }
    conversion.mergesLeft -= map.entries.length
    return map.entries
  })
}

/** The identity of a key. */
function nameOf(key: YamlNode): string {
  return key.kind === 'map' || key.kind === 'list' ? `line ${key.line}` : key.text
}

function depthOf(children: readonly YamlNode[]): number {
  let depth = 0
  for (const child of children) depth = Math.max(depth, child.depth)
  return depth + 1
}

function bounded(node: YamlMap | YamlList, context: Context): YamlNode {
  return node.depth > DEPTH_MAX ? tooDeep(context) : node
}

function tooDeep({ conversion, line }: Context): YamlNode {
  const message = `lists and mappings must be nested at most ${DEPTH_MAX} levels deep`
  conversion.diagnostics.fault(line, `error loading config file: ${message}`)
  return emptyScalar(line)
}
