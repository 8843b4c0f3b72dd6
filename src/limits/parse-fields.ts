// Reads the fields of one mapping in a rules file: strings, flags and numbers. Reports a fault with
// the allowed values for an invalid field. The callers define which fields exist.
import type { Json, JsonObject } from './rule.ts'
import type { Diagnostics } from './rule-fault.ts'
import type { YamlNode, YamlMap } from './parse-yaml.ts'

/** A mapping and the diagnostics of its file. */
export interface Fields {
  readonly map: YamlMap
  readonly diagnostics: Diagnostics
}

/** A string and its line. */
export interface StringField {
  readonly text: string
  readonly line: number
}

/** Maximum number of values in one `metadata`, with aliases expanded. */
const METADATA_VALUES_MAX = 1000
/** V8 copies shorter slices. */
const SLICE_LENGTH_MIN = 13

const kindNames: Readonly<Record<YamlNode['kind'], string>> = {
  map: 'a mapping',
  list: 'a list',
  null: 'null',
  bool: 'the boolean',
  int: 'a number',
  float: 'a number',
  time: 'the timestamp',
  string: 'a string',
}

/** The value of a key; `undefined` if it is absent or null. */
export function fieldOf({ map }: Fields, key: string): YamlNode | undefined {
  for (const entry of map.entries) {
    if (entry.key.kind !== 'string' || entry.key.text !== key) continue
    return entry.value.kind === 'null' ? undefined : entry.value
  }
  return undefined
}

/** Copies a string, because a slice of a file would retain the whole file. */
function copyOf(text: string): string {
  const isSlice = text.length >= SLICE_LENGTH_MIN
  return isSlice && text.isWellFormed() ? Buffer.from(text).toString() : text
}

/** The line of a field; the line of the mapping if the field is absent. */
export function lineOf(fields: Fields, key: string): number {
  return fieldOf(fields, key)?.line ?? fields.map.line
}

/** Reports that the value of a field is invalid. */
export function rejectField(
  { diagnostics }: Fields,
  value: YamlNode,
  { key, allowed }: { readonly key: string; readonly allowed: string },
): void {
  const source = 'text' in value ? ` '${value.text}'` : ''
  const shown = `${kindNames[value.kind]}${source}`
  const message = `error loading config file: ${key} must be ${allowed}: it is ${shown}`
  diagnostics.fault(value.line, message)
}

/**
 * A string; numbers and flags are read as they are written. Empty if it is absent, or if it is a
 * float or a time, which `checkKeys` reports.
 */
export function readString(fields: Fields, key: string): StringField {
  const value = fieldOf(fields, key)
  const absent = { text: '', line: value?.line ?? fields.map.line }
  if (value === undefined || value.kind === 'float' || value.kind === 'time') return absent
  if ('text' in value) return { text: copyOf(value.text), line: value.line }
  rejectField(fields, value, { key, allowed: 'a string' })
  return absent
}

/** True or false; false if it is absent. */
export function readFlag(fields: Fields, key: string): boolean {
  return readOptionalFlag(fields, key) ?? false
}

/** True or false; `undefined` if it is absent. */
export function readOptionalFlag(fields: Fields, key: string): boolean | undefined {
  const value = fieldOf(fields, key)
  if (value === undefined) return undefined
  if (value.kind === 'bool') return value.value === true
  rejectField(fields, value, { key, allowed: 'true or false' })
  return undefined
}

/** A whole number within bounds; `undefined` if it is absent or invalid. */
export function readCount(
  fields: Fields,
  key: string,
  bounds: { readonly min: number; readonly max: number },
): number | undefined {
  const value = fieldOf(fields, key)
  if (value === undefined) return undefined
  const number = value.kind === 'int' ? Number(value.value) : NaN
  if (number >= bounds.min && number <= bounds.max) return number
  rejectField(fields, value, { key, allowed: `a whole number from ${bounds.min} to ${bounds.max}` })
  return undefined
}

/** The mappings of a list; `checkKeys` has reported other items. */
export function readMaps(fields: Fields, key: string): readonly YamlMap[] {
  const value = fieldOf(fields, key)
  if (value === undefined) return []
  if (value.kind === 'list') return value.items.filter((item) => item.kind === 'map')
  rejectField(fields, value, { key, allowed: 'a list' })
  return []
}

/** The arbitrary mapping of `metadata`; `undefined` if it is absent or empty. */
export function readMetadata(fields: Fields): JsonObject | undefined {
  const value = fieldOf(fields, 'metadata')
  if (value === undefined) return undefined
  if (value.kind !== 'map') {
    rejectField(fields, value, { key: 'metadata', allowed: 'a mapping' })
    return undefined
  }
  const budget = { left: METADATA_VALUES_MAX }
  const json = objectOf(value, { fields, budget })
  if (budget.left >= 0) return value.entries.length === 0 ? undefined : json
  const message = `metadata must have at most ${METADATA_VALUES_MAX} values: it has more`
  fields.diagnostics.fault(value.line, `error parsing metadata: ${message}`)
  return undefined
}

interface MetadataContext {
  readonly fields: Fields
  readonly budget: { left: number }
}

function objectOf(map: YamlMap, context: MetadataContext): JsonObject {
  return Object.fromEntries(
    map.entries.map(({ key, value }) => [keyString(key, context), jsonOf(value, context)]),
  )
}

function keyString(key: YamlNode, { fields }: MetadataContext): string {
  if ('text' in key) return copyOf(key.text)
  fields.diagnostics.fault(key.line, 'error parsing metadata: a key must be a string')
  return ''
}

function jsonOf(value: YamlNode, context: MetadataContext): Json {
  context.budget.left -= 1
  if (context.budget.left < 0) return null
  switch (value.kind) {
    case 'map':
      return objectOf(value, context)
    case 'list':
      return value.items.map((item) => jsonOf(item, context))
    case 'null':
      return null
    case 'string':
    case 'time':
      return copyOf(value.text)
    case 'bool':
    case 'int':
    case 'float':
      if (typeof value.value === 'boolean' || Number.isFinite(value.value)) {
        return value.value ?? null
      }
      context.fields.diagnostics.fault(
        value.line,
        `error parsing metadata: '${value.text}' is not a JSON number`,
      )
      return null
  }
}
