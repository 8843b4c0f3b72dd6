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
import type { PolicyEntry, PolicySpec } from './policy.ts'

/** An entry; an empty value matches any. */
type Entry = Required<Pick<PolicyEntry, 'key' | 'value'>>

/** The limits of one descriptor. */
export interface DescriptorLimits {
  readonly match: readonly Entry[]
  /** Values of the last entry, instead of its own: the hashes of API keys. */
  readonly hashes?: readonly string[]
  readonly isAudit: boolean
  /** The fields of each limit, as in rule files. */
  readonly limits: readonly LimitFields[]
}

/** The fields of a limit, as in rule files. */
type LimitFields = Readonly<Record<string, Value>>

interface Node extends Entry {
  limits: DescriptorLimits | undefined
  readonly below: Level
}

interface Level {
  /** By key, then by value. */
  readonly nodes: Map<string, Map<string, Node>>
  /** Descriptor keys whose values are API keys: the limiter hashes all values, in every entry. */
  readonly hashedKeys: Set<string>
}

const writer = new WireWriter() // reused, because a new one allocates memory

/** Serializes the limits of a domain. Each `match` must occur once; their order has no effect. */
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

/** A value of a Struct. */
export type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value }

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

/** The limits of a spec; `namePrefix` precedes their names, such as `namespace/`. */
export function limitFieldsOf(spec: PolicySpec, namePrefix: string): LimitFields[] {
  const { limits, replaces = [], onStoreError } = spec
  return limits.map((limit) => {
    const fields: Record<string, Value> = { name: namePrefix + limit.name }
    if (replaces.length > 0)
      fields['replaces'] = replaces.map((name) => ({ name: namePrefix + name }))
    if (limit.unlimited === true) return { ...fields, unlimited: true }
    fields['algorithm'] = limit.algorithm.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase()
    fields['on_store_error'] = onStoreError.toLowerCase()
    if (limit.requests !== undefined) fields['requests_per_unit'] = limit.requests
    if (limit.window !== undefined) fields['window'] = limit.window
    if (limit.burst !== undefined) fields['burst'] = limit.burst
    return fields
  })
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

/** Whether a value is a list. */
export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value)
}
