// Decodes a RateLimitConfig of an xDS server into the tree that a rule file has, so that the checks
// of rule files apply. A resource has no lines: `line` is the sequential number of a node. Faults
// show the node's path, which NodePaths renders from this number.
import { WireError, WireReader } from '../protobuf/wire-reader.ts'
import * as tags from '../protobuf/config-tags.ts'
import { units } from './descriptor.ts'
import {
  boolNode,
  checkDepth,
  type ConfigDecoding,
  keyNode,
  mapNode,
  type MapNode,
  NodePaths,
  openStruct,
  type OpenStruct,
  type Position,
  readStruct,
  scalarNode,
  STRUCT_VALUES_MAX,
  structNode,
} from './decode-struct.ts'
import { applyMetadata } from './curtail-fields.ts'
import { REPLACES_MAX } from './parse-limit.ts'
import type { YamlNode } from './parse-yaml.ts'
import type { AllDiagnostics, Diagnostics } from './rule-fault.ts'

/** A resource of an xDS server. */
export interface RuleResource {
  /** Its position in the version, from 0. */
  readonly index: number
  /** A serialized RateLimitConfig. */
  readonly bytes: Uint8Array
}

/** A decoded resource, and the diagnostics that show its paths. */
export interface DecodedConfig {
  readonly root: MapNode
  readonly diagnostics: Diagnostics
}

const NAME_LENGTH_MAX = 200
const MESSAGE = 'RateLimitConfig'
const unitNames = new Map<number, string>([
  [0, 'UNKNOWN'],
  ...Object.entries(units).map(([name, number]) => [number, name] as const),
])

/**
 * Decodes one resource. Adds a fault and returns `undefined` if it is malformed. Keeps at most one
 * descriptor beyond `descriptorsMax`, so that the caller detects and rejects the excess.
 */
export function decodeConfig(
  { index, bytes }: RuleResource,
  all: AllDiagnostics,
  descriptorsMax: number,
): DecodedConfig | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const paths = new NodePaths()
  let place = `resources[${index}]`
  try {
    place = placeOf(buffer, place)
    const diagnostics = all.of(place, (line) => paths.render(line))
    const reader = new WireReader(buffer, MESSAGE)
    const left = { descriptors: descriptorsMax + 1, values: STRUCT_VALUES_MAX }
    return { root: readConfig({ reader, paths, diagnostics, left }), diagnostics }
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    all.of(place, () => '').fault(1, `error loading config: ${error.message}`)
    return undefined
  }
}

/** How faults name the resource: by its name, if it has one. */
function placeOf(buffer: Buffer, unnamed: string): string {
  const reader = new WireReader(buffer, MESSAGE, false)
  let name = ''
  while (reader.at < reader.length) {
    const tag = reader.tag()
    if (tag === tags.CONFIG_NAME) name = reader.string()
    else reader.skip(tag)
  }
  return name === '' ? unnamed : `resource ${JSON.stringify(name.slice(0, NAME_LENGTH_MAX))}`
}

function readConfig(decoding: ConfigDecoding): MapNode {
  const { reader } = decoding
  const at: Position = { line: 1, depth: 0 }
  let domain = ''
  const descriptors: MapNode[] = []
  while (reader.at < reader.length) {
    const tag = reader.tag()
    if (tag === tags.CONFIG_DOMAIN) domain = reader.string()
    else if (tag === tags.CONFIG_DESCRIPTORS) readChild(decoding, at, descriptors)
    else if (tag === tags.CONFIG_NAME) reader.skip(tag)
    else skipUnknown(decoding, tag, at)
  }
  return mapNode(at, [
    { key: keyNode('domain'), value: scalarNode('string', domain, at) },
    { key: keyNode('descriptors'), value: { kind: 'list', line: 1, items: descriptors, depth: 1 } },
  ])
}

/** Reads one item of `descriptors` into `list`. */
function readChild(decoding: ConfigDecoding, parent: Position, list: MapNode[]): void {
  const { reader, paths, left } = decoding
  left.descriptors -= 1
  if (left.descriptors < 0) {
    reader.delimited()
    return
  }
  const listLine = paths.add(parent.line, 'descriptors')
  const line = paths.add(listLine, list.length)
  list.push(readDescriptor(decoding, { line, depth: parent.depth + 1 }))
}

const flags = new Map([
  [tags.DESCRIPTOR_SHADOW, 'shadow_mode'],
  [tags.DESCRIPTOR_DETAILED, 'detailed_metric'],
  [tags.DESCRIPTOR_QUOTA, 'quota_mode'],
])

function readDescriptor(decoding: ConfigDecoding, at: Position): MapNode {
  const { reader } = decoding
  const end = endOf(reader, at)
  const fields = new Map<string, MapNode['entries'][number]>()
  const set = (name: string, value: YamlNode) => fields.set(name, { key: keyNode(name), value })
  const children: MapNode[] = []
  let limit: ReceivedLimit | undefined
  let metadata: OpenStruct | undefined
  while (reader.at < end) {
    const tag = reader.tag()
    const flag = flags.get(tag)
    if (tag === tags.DESCRIPTOR_KEY) set('key', scalarNode('string', reader.string(), at))
    else if (tag === tags.DESCRIPTOR_VALUE) set('value', scalarNode('string', reader.string(), at))
    else if (tag === tags.DESCRIPTOR_LIMIT) limit = readLimit(decoding, at, limit)
    else if (tag === tags.DESCRIPTOR_DESCRIPTORS) readChild(decoding, at, children)
    else if (tag === tags.DESCRIPTOR_METADATA) {
      metadata ??= openStruct(decoding, at, 'metadata')
      readStruct(decoding, metadata)
    } else if (flag !== undefined) set(flag, boolNode(reader.bool(), at))
    else skipUnknown(decoding, tag, at)
  }
  reader.finish(end)
  if (limit !== undefined) set('rate_limit', limitNode(limit))
  set('descriptors', { kind: 'list', line: at.line, items: children, depth: 1 })
  if (metadata !== undefined) applyMetadata(fields, structNode(metadata), decoding.diagnostics)
  return mapNode(at, [...fields.values()])
}

/** The content of the message RateLimitPolicy, which is the `rate_limit` of a descriptor. */
interface ReceivedLimit {
  readonly at: Position
  unit: number
  requests: number
  unlimited: boolean
  name: string
  readonly replaces: MapNode[]
}

/** Reads a RateLimitPolicy; a second one is merged into the first. */
function readLimit(
  decoding: ConfigDecoding,
  parent: Position,
  first: ReceivedLimit | undefined,
): ReceivedLimit {
  const { reader, paths } = decoding
  const at = first?.at ?? { line: paths.add(parent.line, 'rate_limit'), depth: parent.depth + 1 }
  const limit = first ?? { at, unit: 0, requests: 0, unlimited: false, name: '', replaces: [] }
  const end = endOf(reader, at)
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === tags.LIMIT_UNIT) limit.unit = reader.varint()
    else if (tag === tags.LIMIT_REQUESTS) limit.requests = reader.varint()
    else if (tag === tags.LIMIT_UNLIMITED) limit.unlimited = reader.bool()
    else if (tag === tags.LIMIT_NAME) limit.name = reader.string()
    else if (tag === tags.LIMIT_REPLACES) readReplace(decoding, limit)
    else skipUnknown(decoding, tag, at)
  }
  reader.finish(end)
  return limit
}

/** Reads one item of `replaces`; parse-limit.ts rejects too many of them. */
function readReplace(decoding: ConfigDecoding, { at: parent, replaces }: ReceivedLimit): void {
  const { reader, paths } = decoding
  if (replaces.length > REPLACES_MAX) {
    reader.delimited()
    return
  }
  const listLine = paths.add(parent.line, 'replaces')
  const at = { line: paths.add(listLine, replaces.length), depth: parent.depth + 1 }
  const end = endOf(reader, at)
  let name = ''
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === tags.REPLACE_NAME) name = reader.string()
    else skipUnknown(decoding, tag, at)
  }
  reader.finish(end)
  replaces.push(mapNode(at, [{ key: keyNode('name'), value: scalarNode('string', name, at) }]))
}

function limitNode({ at, unit, requests, unlimited, name, replaces }: ReceivedLimit): MapNode {
  const { line } = at
  const unitName = unitNames.get(unit) ?? String(unit)
  const count = { kind: 'int', text: String(requests), value: requests, line, depth: 0 } as const
  return mapNode(at, [
    { key: keyNode('unit'), value: scalarNode('string', unitName, at) },
    { key: keyNode('requests_per_unit'), value: count },
    { key: keyNode('unlimited'), value: boolNode(unlimited, at) },
    { key: keyNode('name'), value: scalarNode('string', name, at) },
    { key: keyNode('replaces'), value: { kind: 'list', line, items: replaces, depth: 1 } },
  ])
}

/** The end of a nested message. Rejects messages that are nested too deep. */
function endOf(reader: WireReader, { depth }: Position): number {
  checkDepth(reader, depth)
  return reader.endOfField()
}

function skipUnknown({ reader, diagnostics }: ConfigDecoding, tag: number, at: Position): void {
  diagnostics.warn(at.line, `field ${tag >>> 3} is unknown: it is ignored`)
  reader.skip(tag)
}
