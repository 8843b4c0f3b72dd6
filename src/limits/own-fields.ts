// The fields that RateLimitConfig lacks, such as `algorithm`: they are in the descriptor's metadata
// under one key, which other servers ignore, with the names that they have in rule files.
import { OWN_KEY } from '../protobuf/config-tags.ts'
import { keyNode, type MapNode } from './decode-struct.ts'
import type { YamlNode } from './parse-yaml.ts'
import type { Diagnostics } from './rule-fault.ts'

/** The fields that only the message itself has. */
const MESSAGE_FIELDS = ['key', 'value', 'descriptors', 'metadata']
const limitFields = ['rate_limit', 'rate_limits']

/**
 * Adds the metadata of a descriptor to its fields: without our key, whose fields replace those of
 * the message; the fields of `rate_limit` are merged one by one. Fields that are null are ignored.
 */
export function setMetadata(
  fields: Map<string, MapNode['entries'][number]>,
  metadata: MapNode,
  diagnostics: Diagnostics,
): void {
  const own = metadata.entries.find((entry) => nameOf(entry) === OWN_KEY)
  const entries = metadata.entries.filter((entry) => entry !== own)
  if (entries.length > 0) {
    fields.set('metadata', { key: keyNode('metadata'), value: { ...metadata, entries } })
  }
  if (own === undefined || own.value.kind === 'null') return
  if (own.value.kind !== 'map') {
    diagnostics.fault(metadata.line, `${OWN_KEY} must be an object with fields of rule files`)
    return
  }
  const sent = fields.get('rate_limit')?.value
  const present = withoutNulls(own.value).entries
  if (present.some((entry) => nameOf(entry) === 'rate_limits')) fields.delete('rate_limit')
  for (const entry of present) {
    const name = nameOf(entry)
    if (MESSAGE_FIELDS.includes(name)) {
      const message = `${OWN_KEY} must not contain ${name}: it is a field of the message`
      diagnostics.fault(own.value.line, message)
    } else {
      const limit = limitFields.includes(name) ? limitOf(entry.value) : entry.value
      const value = name === 'rate_limit' ? mergeLimit(sent, limit) : limit
      fields.set(name, { key: entry.key, value })
    }
  }
}

function nameOf({ key }: MapNode['entries'][number]): string {
  return 'text' in key ? key.text : ''
}

function withoutNulls(map: MapNode): MapNode {
  return { ...map, entries: map.entries.filter(({ value }) => value.kind !== 'null') }
}

/** A limit, or the limits in a list, without the fields that are null. */
function limitOf(node: YamlNode): YamlNode {
  if (node.kind === 'list') return { ...node, items: node.items.map(limitOf) }
  return node.kind === 'map' ? withoutNulls(node) : node
}

/** The limit of the message with our fields. `window` replaces `unit`, which others may need. */
function mergeLimit(sent: YamlNode | undefined, own: YamlNode): YamlNode {
  if (sent?.kind !== 'map' || own.kind !== 'map') return own
  const names = own.entries.map(nameOf)
  const replaced = new Set(names.includes('window') ? [...names, 'unit'] : names)
  const kept = sent.entries.filter((entry) => !replaced.has(nameOf(entry)))
  return { ...sent, entries: [...kept, ...own.entries] }
}
