// Serializes the policies of a domain as one RateLimitConfig. Limits are in the metadata of their
// descriptor under `curtail.dev`, because the message lacks most of their fields.
import * as tags from '../protobuf/config-tags.ts'
import {
  ENTRY_KEY,
  ENTRY_VALUE,
  LIST_VALUES,
  STRUCT_FIELDS,
  VALUE_BOOL,
  VALUE_LIST,
  VALUE_NUMBER,
  VALUE_STRING,
  VALUE_STRUCT,
} from '../protobuf/struct-tags.ts'
import { WireWriter } from '../protobuf/wire-writer.ts'
import { type DescriptorLimits, type Entry, isList, type Value } from './descriptor-limits.ts'

interface Node extends Entry {
  limits: DescriptorLimits | undefined
  readonly below: Level
}

interface Level {
  /** By key, then by value. */
  readonly nodes: Map<string, Map<string, Node>>
  /** Keys whose values are API keys. All descriptors with such a key have the field `hashed`. */
  readonly hashedKeys: Set<string>
}

const writer = new WireWriter() // reused, because a new one allocates memory

/** Serializes the limits of a domain. Each `match` must be unique; the order has no effect. */
export function writeConfig(domain: string, all: readonly DescriptorLimits[]): Uint8Array {
  const top = emptyLevel()
  for (const limits of all) addToTree(top, limits)
  writer.start()
  writer.string(tags.CONFIG_NAME, domain)
  writer.string(tags.CONFIG_DOMAIN, domain)
  writeLevel(tags.CONFIG_DESCRIPTORS, top)
  return writer.finish()
}

function emptyLevel(): Level {
  return { nodes: new Map(), hashedKeys: new Set() }
}

function addToTree(top: Level, limits: DescriptorLimits): void {
  let level = top
  for (const entry of limits.match.slice(0, -1)) level = nodeAt(level, entry).below
  for (const last of limits.match.slice(-1)) {
    // Set even if no API key is left, so that the limiter never logs a revoked one in plain text.
    if (limits.hashes !== undefined) level.hashedKeys.add(last.key)
    const values = limits.hashes ?? [last.value]
    for (const value of values) nodeAt(level, { key: last.key, value }).limits = limits
  }
}

function nodeAt(level: Level, { key, value }: Entry): Node {
  const values = level.nodes.get(key) ?? new Map<string, Node>()
  level.nodes.set(key, values)
  const node = values.get(value) ?? { key, value, limits: undefined, below: emptyLevel() }
  values.set(value, node)
  return node
}

function writeLevel(tag: number, { nodes, hashedKeys }: Level): void {
  const all = [...nodes.values()].flatMap((values) => [...values.values()])
  for (const { key, value, limits, below } of all.sort(compareNodes)) {
    const descriptor = writer.open(tag)
    writer.string(tags.DESCRIPTOR_KEY, key)
    if (value !== '') writer.string(tags.DESCRIPTOR_VALUE, value)
    writeLevel(tags.DESCRIPTOR_DESCRIPTORS, below)
    writeFields(limits, hashedKeys.has(key))
    writer.close(descriptor)
  }
}

/** The longest value first: the limiter uses the first one with `*` that matches. */
function compareNodes(a: Node, b: Node): number {
  return (
    compareStrings(a.key, b.key) ||
    b.value.length - a.value.length ||
    compareStrings(a.value, b.value)
  )
}

/** Compares by UTF-16 code units, independent of the locale. */
export function compareStrings(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function writeFields(limits: DescriptorLimits | undefined, isHashed: boolean): void {
  if (limits?.isAudit === true) writer.number(tags.DESCRIPTOR_SHADOW, 1)
  if (limits === undefined && !isHashed) return
  const metadata = writer.open(tags.DESCRIPTOR_METADATA)
  writeEntry(tags.CURTAIL_KEY, {
    ...(isHashed && { hashed: true }),
    ...(limits && { rate_limits: limits.limits }),
  })
  writer.close(metadata)
}

function writeEntry(key: string, value: Value): void {
  const entry = writer.open(STRUCT_FIELDS)
  writer.string(ENTRY_KEY, key)
  writeValue(ENTRY_VALUE, value)
  writer.close(entry)
}

function writeValue(tag: number, value: Value): void {
  const opened = writer.open(tag)
  if (typeof value === 'string') writer.string(VALUE_STRING, value)
  else if (typeof value === 'number') writer.double(VALUE_NUMBER, value)
  else if (typeof value === 'boolean') writer.number(VALUE_BOOL, Number(value))
  else if (isList(value)) {
    const list = writer.open(VALUE_LIST)
    for (const item of value) writeValue(LIST_VALUES, item)
    writer.close(list)
  } else {
    const struct = writer.open(VALUE_STRUCT)
    for (const [key, field] of Object.entries(value)) writeEntry(key, field)
    writer.close(struct)
  }
  writer.close(opened)
}
