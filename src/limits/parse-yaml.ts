// Parses a YAML file into a tree with line numbers, with all aliases resolved and all bounds
// checked. Independent of rules.
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

/** A value of a file, and its line. */
export type YamlNode = LocatedMap | LocatedList | LocatedScalar

/** A mapping with unique keys. */
export interface LocatedMap {
  readonly kind: 'map'
  readonly line: number
  readonly entries: readonly LocatedEntry[]
  /** Number of nested levels. */
  readonly depth: number
}

/** A key of a mapping and its value. */
interface LocatedEntry {
  readonly key: YamlNode
  readonly value: YamlNode
}

/** A list. */
interface LocatedList {
  readonly kind: 'list'
  readonly line: number
  readonly items: readonly YamlNode[]
  readonly depth: number
}

/** A scalar. */
interface LocatedScalar extends Scalar {
  readonly line: number
  readonly depth: 0
}

/** Bytes of a file at most. */
export const FILE_BYTES_MAX = 1024 * 1024
/** Nested levels of lists and mappings at most, with aliases resolved. */
export const DEPTH_MAX = 100
/** Entries that `<<` copies in one file at most. */
const MERGED_ENTRIES_MAX = 100_000

const SYNTAX_FAULTS_MAX = 20
const tags: Readonly<Record<string, Scalar['kind']>> = {
  'tag:yaml.org,2002:str': 'text',
  'tag:yaml.org,2002:int': 'int',
  'tag:yaml.org,2002:bool': 'bool',
  'tag:yaml.org,2002:float': 'float',
  'tag:yaml.org,2002:null': 'null',
}
const collectionTags = ['tag:yaml.org,2002:map', 'tag:yaml.org,2002:seq']

/** State of the conversion of one file. */
interface Walk {
  readonly lineAt: (position: number) => number
  readonly diagnostics: Diagnostics
  readonly anchors: Map<string, YamlNode>
  mergesLeft: number
}

/** Parses one file; `undefined` if it has a fault, which the diagnostics contain. */
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
    uniqueKeys: false, // quadratic there; checked below
    schema: 'failsafe', // resolved below, as the reference does
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
    diagnostics.warn(line, 'only the first YAML document of a file counts')
  }
  const walk: Walk = { lineAt, diagnostics, anchors: new Map(), mergesLeft: MERGED_ENTRIES_MAX }
  return locate(first.contents, { walk, depth: 0, line: 1 })
}

/** The library's message of a syntax error. */
interface SyntaxFault {
  readonly code: string
  readonly message: string
  readonly pos: readonly [number, number]
}

/** The message of the reference's parser for its most common case, else our parser's. */
function syntaxMessage(error: SyntaxFault, line: number, text: string): string {
  const isCutOff = error.code === 'MISSING_CHAR' && error.pos[0] >= text.length
  return `yaml: line ${line}: ${isCutOff ? 'found unexpected end of stream' : error.message}`
}

function emptyScalar(line: number): LocatedScalar {
  return { kind: 'null', text: '', value: undefined, line, depth: 0 }
}

/** Context of a node: the conversion, its depth, and its line if it has none of its own. */
interface Place {
  readonly walk: Walk
  readonly depth: number
  readonly line: number
}

function locate(node: ParsedNode | null, place: Place): YamlNode {
  if (node === null) return emptyScalar(place.line)
  const line = place.walk.lineAt(node.range[0])
  if (isAlias(node)) return followAlias(node, { ...place, line })
  const located = locateContent(node, { ...place, line })
  if (node.anchor !== undefined) place.walk.anchors.set(node.anchor, located)
  return located
}

function followAlias(node: Alias.Parsed, { walk, line }: Place): YamlNode {
  const target = walk.anchors.get(node.source)
  if (target !== undefined) return target
  const message = `error loading config file: yaml: line ${line}: unknown anchor '${node.source}'`
  walk.diagnostics.fault(line, `${message} referenced`)
  return emptyScalar(line)
}

function locateContent(node: Exclude<ParsedNode, Alias.Parsed>, place: Place): YamlNode {
  const { walk, depth, line } = place
  if (isScalar(node)) return locateScalar(node, place)
  checkTag(node.tag, place)
  if (depth >= DEPTH_MAX) return tooDeep(place)
  const within = { walk, depth: depth + 1, line }
  if (isMap(node)) return locateMap(node, within)
  if (!isSeq(node)) return emptyScalar(line)
  const items = node.items.map((item) => locate(item, within))
  return bounded({ kind: 'list', line, items, depth: depthOf(items) }, place)
}

function checkTag(tag: string | undefined, { walk, line }: Place): void {
  if (tag === undefined || collectionTags.includes(tag)) return
  walk.diagnostics.fault(line, `error loading config file: the tag '${tag}' is not known`)
}

function locateScalar(node: ParsedNode & { source?: string }, place: Place): LocatedScalar {
  const { type, tag } = node as { type?: string; tag?: string }
  const text = node.source ?? ''
  const { line } = place
  const asText = { kind: 'text', text, value: undefined, line, depth: 0 } as const
  if (tag === undefined || tag === '!') {
    const isPlain = type === 'PLAIN' && tag === undefined
    return isPlain ? { ...resolvePlain(text), line, depth: 0 } : asText
  }
  const kind = tags[tag]
  if (kind === 'text') return asText
  const resolved = resolvePlain(text)
  if (kind !== undefined && resolved.kind === kind) return { ...resolved, line, depth: 0 }
  const wrong = kind === undefined ? 'is not known' : `does not fit '${text}'`
  place.walk.diagnostics.fault(line, `error loading config file: the tag '${tag}' ${wrong}`)
  return asText
}

function locateMap(node: YAMLMap.Parsed, place: Place): YamlNode {
  const { walk, line } = place
  const own = new Map<string, LocatedEntry>()
  const merged: LocatedEntry[] = []
  for (const pair of node.items) {
    const key = locate(pair.key, place)
    const value = locate(pair.value, { ...place, line: key.line })
    if (isMergeKey(pair.key)) merged.push(...mergedEntries(value, place))
    else if (own.has(nameOf(key))) {
      walk.diagnostics.fault(
        key.line,
        `error loading config file: key '${nameOf(key)}' comes twice`,
      )
    } else own.set(nameOf(key), { key, value })
  }
  for (const entry of merged) {
    if (!own.has(nameOf(entry.key))) own.set(nameOf(entry.key), entry)
  }
  const entries = [...own.values()]
  const depth = depthOf(entries.flatMap(({ key, value }) => [key, value]))
  return bounded({ kind: 'map', line, entries, depth }, place)
}

function isMergeKey(key: ParsedNode | null): boolean {
  return isScalar(key) && key.source === '<<' && key.type === 'PLAIN'
}

/** The mappings that `<<` merges: one, or those of a list, of which the first takes precedence. */
function mergedEntries(value: YamlNode, { walk, line }: Place): readonly LocatedEntry[] {
  const maps = value.kind === 'list' ? value.items : [value]
  return maps.flatMap((map) => {
    if (map.kind !== 'map') {
      walk.diagnostics.fault(line, 'error loading config file: << must name a mapping')
      return []
    }
    if (walk.mergesLeft < map.entries.length) {
      const bound = `at most ${MERGED_ENTRIES_MAX} entries`
      walk.diagnostics.fault(line, `error loading config file: << may bring ${bound} into a file`)
      return []
    }
    walk.mergesLeft -= map.entries.length
    return map.entries
  })
}

/** The identity of a key. */
function nameOf(key: YamlNode): string {
  return key.kind === 'map' || key.kind === 'list' ? `line ${key.line}` : key.text
}

function depthOf(parts: readonly YamlNode[]): number {
  let depth = 0
  for (const part of parts) depth = Math.max(depth, part.depth)
  return depth + 1
}

function bounded(located: LocatedMap | LocatedList, place: Place): YamlNode {
  return located.depth > DEPTH_MAX ? tooDeep(place) : located
}

function tooDeep({ walk, line }: Place): YamlNode {
  const message = `lists and mappings may stand ${DEPTH_MAX} deep within each other`
  walk.diagnostics.fault(line, `error loading config file: ${message}`)
  return emptyScalar(line)
}
