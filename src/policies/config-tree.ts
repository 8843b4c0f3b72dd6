// The tree of one policy's rules, equal to the one that the limiter decodes from their
// RateLimitConfig. With it, a check decodes no RateLimitConfig, which took a third of the time of
// the first compilation.
import {
  boolNode,
  keyNode,
  mapNode,
  type MapNode,
  numberNode,
  type Position,
  scalarNode,
} from '../limits/decode-struct.ts'
import type { YamlNode } from '../limits/parse-yaml.ts'
import type { RuleFileTree } from '../limits/parse-rules.ts'
import { type DescriptorLimits, isList, type Value } from './descriptor-limits.ts'

type FieldEntry = MapNode['entries'][number]

const ROOT: Position = { line: 1, depth: 0 }
/** Line numbers from here on identify limits; lower ones identify descriptors, by their depth. */
const LIMIT_LINE_MIN = 1000

/** The tree of a policy. The path of a fault has its depth and the index of its limit. */
export function configTreeOf(domain: string, limits: DescriptorLimits): RuleFileTree {
  const { match, hashes } = limits
  let below: FieldEntry[] = limitFields(limits, match.length)
  for (let index = match.length - 1; index >= 0; index--) {
    const { key = '', value = '' } = match[index] ?? {}
    const values = index === match.length - 1 && hashes !== undefined ? hashes : [value]
    const fields = below
    const items = values.map((each) => descriptorOf({ key, value: each, fields }, index + 1))
    below = [fieldOf('descriptors', listOf(items, index + 1))]
  }
  const root = mapNode(ROOT, [fieldOf('domain', scalarNode('string', domain, ROOT)), ...below])
  return { root, pathOf: (line) => pathOf(line, match.length) }
}

function pathOf(line: number, depth: number): string {
  const isLimit = line >= LIMIT_LINE_MIN
  const steps = Array.from({ length: isLimit ? depth : line - 1 }, () => 'descriptors[0]')
  if (isLimit) steps.push(`rate_limits[${line - LIMIT_LINE_MIN}]`)
  return steps.join('.')
}

function descriptorOf(
  { key, value, fields }: { key: string; value: string; fields: readonly FieldEntry[] },
  depth: number,
): MapNode {
  const at = { line: depth + 1, depth }
  const entries = [fieldOf('key', scalarNode('string', key, at))]
  if (value !== '') entries.push(fieldOf('value', scalarNode('string', value, at)))
  return mapNode(at, [...entries, ...fields])
}

/** The fields of the descriptor at `depth`, which has the limits. */
function limitFields({ hashes, isAudit, limits }: DescriptorLimits, depth: number): FieldEntry[] {
  const at = { line: depth + 1, depth }
  const items = limits.map((fields, index) =>
    nodeOf(fields, { line: LIMIT_LINE_MIN + index, depth: depth + 1 }),
  )
  return [
    ...(isAudit ? [fieldOf('shadow_mode', boolNode(true, at))] : []),
    ...(hashes === undefined ? [] : [fieldOf('hashed', boolNode(true, at))]),
    fieldOf('rate_limits', listOf(items, at.line)),
  ]
}

function nodeOf(value: Value, at: Position): YamlNode {
  if (typeof value === 'string') return scalarNode('string', value.toWellFormed(), at)
  if (typeof value === 'number') return numberNode(value, at)
  if (typeof value === 'boolean') return boolNode(value, at)
  if (isList(value)) {
    const items = value.map((item) => nodeOf(item, at))
    return listOf(items, at.line)
  }
  const fields = Object.entries(value).map(([name, field]) => fieldOf(name, nodeOf(field, at)))
  return mapNode(at, fields)
}

function fieldOf(name: string, value: YamlNode): FieldEntry {
  return { key: keyNode(name), value }
}

function listOf(items: readonly YamlNode[], line: number): YamlNode {
  return { kind: 'list', line, items, depth: 1 }
}
