// Parses basic YAML, which most rule files consist of, in a fraction of the time of parse-yaml.ts
// and into the same tree. Leaves files with other syntax, and all faults of syntax, to that
// parser.
import {
  COLLECTION_STYLE,
  type Event,
  EVENT_ID,
  type MappingEvent,
  parseEvents,
  SCALAR_STYLE,
  type ScalarEvent,
  type SequenceEvent,
  YAMLException,
} from 'js-yaml'
import { resolvePlain } from './parse-scalar.ts'
import { FILE_BYTES_MAX, type YamlNode, type YamlScalar } from './parse-yaml.ts'

/**
 * Syntax that is not basic: tabs, carriage returns, directives, ends of documents, and nodes that
 * start with an anchor or a tag, for which js-yaml may take exponential time.
 */
const otherSyntax = /[\t\r\uFEFF]|^(?:%|\.\.\.)|(?:^|[\s,[\]{}:'"])[&!]/m
/** Longer keys are left to parse-yaml.ts, which rejects those beyond about 1024 characters. */
const KEY_LENGTH_MAX = 1000
const COLON = 58
const NEWLINE = 10
const SPACE = 32
const HYPHEN = 45
const SMALL_MAP_ENTRIES_MAX = 16

interface BasicEntry {
  readonly key: YamlScalar
  readonly value: YamlNode
}

/** State of the conversion of one file's events into a tree. */
interface Reader {
  readonly text: string
  readonly events: readonly Event[]
  /** The line of a position; positions must not decrease. */
  readonly lineOf: (position: number) => number
  /** Index of the next event. */
  at: number
}

/** Parses one file; `undefined` if it is not basic YAML, is invalid or is too large. */
export function parseBasicYaml(text: string): YamlNode | undefined {
  if (Buffer.byteLength(text) > FILE_BYTES_MAX || otherSyntax.test(text)) return undefined
  if (text.startsWith(' ')) return undefined // js-yaml ignores the indentation of the first line
  const events = eventsOf(text)
  const [start] = events
  if (start?.type !== EVENT_ID.DOCUMENT || start.explicitEnd) return undefined
  const reader: Reader = { text, events, lineOf: createLineCounter(text), at: 1 }
  const root = readNode(reader)
  // Any further event belongs to a second document.
  return reader.at === events.length - 1 ? root : undefined
}

/** The events of a file; empty if it is invalid. */
function eventsOf(text: string): readonly Event[] {
  try {
    return parseEvents(text, {})
  } catch (error) {
    if (error instanceof YAMLException) return []
    throw error
  }
}

function createLineCounter(text: string): Reader['lineOf'] {
  let line = 1
  let lineEnd = text.indexOf('\n')
  return (position) => {
    while (lineEnd !== -1 && lineEnd < position) {
      line++
      lineEnd = text.indexOf('\n', lineEnd + 1)
    }
    return line
  }
}

function readNode(reader: Reader): YamlNode | undefined {
  const event = reader.events[reader.at++]
  if (event?.type === EVENT_ID.SCALAR) {
    const isAmbiguous = event.style === SCALAR_STYLE.PLAIN && followsComment(reader.text, event)
    return isAmbiguous ? undefined : readScalar(reader, event)
  }
  if (event?.type === EVENT_ID.MAPPING) return readMap(reader, event)
  if (event?.type === EVENT_ID.SEQUENCE) return readList(reader, event)
  return undefined // an alias
}

/**
 * Whether a value starts a line that follows a comment with no space after its `#`. parse-yaml.ts
 * may then append the next line to the value.
 */
function followsComment(text: string, { valueStart }: ScalarEvent): boolean {
  if (valueStart < 0) return false
  let lineStart = text.lastIndexOf('\n', valueStart - 1) + 1
  if (text.slice(lineStart, valueStart).trim() !== '') return false
  while (lineStart > 1) {
    const start = text.lastIndexOf('\n', lineStart - 2) + 1
    const line = text.slice(start, lineStart).trim()
    if (line !== '' && !line.startsWith('#')) return false
    if (line.length > 1 && line.charAt(1) !== ' ') return true
    lineStart = start
  }
  return false
}

/** A scalar in one line without escapes; `undefined` for any other, including an empty one. */
function readScalar({ text, lineOf }: Reader, event: ScalarEvent): YamlScalar | undefined {
  const { style, valueStart, valueEnd } = event
  const isPlain = style === SCALAR_STYLE.PLAIN
  if (valueStart < 0 || (!event.fast && !isPlain)) return undefined
  const value = text.slice(valueStart, valueEnd)
  if (!event.fast && value.includes('\n')) return undefined
  const line = lineOf(valueStart)
  if (!isPlain) return { kind: 'string', text: value, value: undefined, line, depth: 0 }
  const resolved = resolvePlain(value)
  return { kind: resolved.kind, text: value, value: resolved.value, line, depth: 0 }
}

function readList(reader: Reader, { start }: SequenceEvent): YamlNode | undefined {
  const line = reader.lineOf(start)
  const items: YamlNode[] = []
  let depth = 0
  while (reader.events[reader.at]?.type !== EVENT_ID.POP) {
    const item = readNode(reader)
    if (item === undefined) return undefined
    items.push(item)
    depth = Math.max(depth, item.depth)
  }
  reader.at++
  return { kind: 'list', line, items, depth: depth + 1 }
}

function readMap(reader: Reader, { start, style }: MappingEvent): YamlNode | undefined {
  // A pair in a list is a mapping without braces.
  const isFlow = style === COLLECTION_STYLE.FLOW
  if (isFlow && reader.text.charAt(start) !== '{') return undefined
  const line = reader.lineOf(start)
  const entries: BasicEntry[] = []
  let depth = 0
  while (reader.events[reader.at]?.type !== EVENT_ID.POP) {
    const key = readKey(reader, isFlow)
    const value = key && readValue(reader, { keyLine: key.line, isFlow })
    if (key === undefined || value === undefined) return undefined
    entries.push({ key, value })
    depth = Math.max(depth, value.depth)
  }
  reader.at++
  return hasDuplicates(entries) ? undefined : { kind: 'map', line, entries, depth: depth + 1 }
}

/** Whether two keys are equal. Small mappings, the majority, are compared without a set. */
function hasDuplicates(entries: readonly BasicEntry[]): boolean {
  if (entries.length > SMALL_MAP_ENTRIES_MAX) {
    return new Set(entries.map(({ key }) => key.text)).size < entries.length
  }
  return entries.some(({ key }, at) => {
    for (let before = 0; before < at; before++) {
      if (entries[before]?.key.text === key.text) return true
    }
    return false
  })
}

/** A scalar directly before a colon, but not `<<`; in a block, the first one of its line. */
function readKey(reader: Reader, isFlow: boolean): YamlScalar | undefined {
  const event = reader.events[reader.at++]
  if (event?.type !== EVENT_ID.SCALAR) return undefined
  const key = readScalar(reader, event)
  const isPlain = event.style === SCALAR_STYLE.PLAIN
  if (!isFlow && !startsLine(reader.text, event.valueStart - (isPlain ? 0 : 1))) return undefined
  const keyEnd = isPlain ? event.valueEnd : event.valueEnd + 1
  if (key === undefined || reader.text.charCodeAt(keyEnd) !== COLON) return undefined
  return key.text === '<<' || key.text.length > KEY_LENGTH_MAX ? undefined : key
}

/** Whether only spaces and hyphens precede a key: js-yaml wrongly accepts `- 'a'b: c`. */
function startsLine(text: string, keyStart: number): boolean {
  let at = keyStart - 1
  while (text.charCodeAt(at) === SPACE || text.charCodeAt(at) === HYPHEN) at--
  return at < 0 || text.charCodeAt(at) === NEWLINE
}

/** A value of a mapping; if it is empty in a block, its line is that of the key. */
function readValue(
  reader: Reader,
  { keyLine, isFlow }: { readonly keyLine: number; readonly isFlow: boolean },
): YamlNode | undefined {
  const event = reader.events[reader.at]
  const isEmpty = event?.type === EVENT_ID.SCALAR && event.valueStart < 0
  if (!isEmpty || isFlow) return readNode(reader)
  reader.at++
  return { kind: 'null', text: '', value: undefined, line: keyLine, depth: 0 }
}
