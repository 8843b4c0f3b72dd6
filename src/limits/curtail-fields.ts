// Curtail's fields that RateLimitConfig lacks, such as `algorithm`: a descriptor has them in its
// metadata, under one key that other servers ignore, with the names that they have in rule files.
import { CURTAIL_KEY } from '../protobuf/config-tags.ts'
import { keyNode, type MapNode } from './decode-struct.ts'
import type { YamlNode } from './parse-yaml.ts'
import type { Diagnostics } from './rule-fault.ts'

/** The fields that only the message itself may set. */
const MESSAGE_FIELDS = ['key', 'value', 'descriptors', 'metadata']

/**
 * Applies the metadata of a descriptor to its fields: fields under Curtail's key replace those of
 * the message (`rate_limit` is merged field by field), and the rest becomes the field `metadata`.
 * Ignores fields that are null.
 */
export function applyMetadata(
  fields: Map<string, MapNode['entries'][number]>,
  metadata: MapNode,
  diagnostics: Diagnostics,
): void {
  const own = metadata.entries.find((entry) => nameOf(entry) === CURTAIL_KEY)
  const entries = metadata.entries.filter((entry) => entry !== own)
  if (entries.length > 0) {
    fields.set('metadata', { key: keyNode('metadata'), value: { ...metadata, entries } })
  }
  if (own === undefined || own.value.kind === 'null') return
  if (own.value.kind !== 'map') {
    diagnostics.fault(metadata.line, `${CURTAIL_KEY} must be an object with fields of rule files`)
    return
  }
  const sent = fields.get('rate_limit')?.value
  const present = withoutNulls(own.value).entries
  if (present.some((entry) => nameOf(entry) === 'rate_limits')) fields.delete('rate_limit')
  for (const entry of present) {
    const name = nameOf(entry)
    if (MESSAGE_FIELDS.includes(name)) {
      const message = `${CURTAIL_KEY} must not contain ${name}: it is a field of the message`
      diagnostics.fault(own.value.line, message)
    } else {
      const value = name === 'rate_limit' ? mergeLimit(sent, entry.value) : entry.value
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

/** The message's limit with our fields. `window` replaces `unit`, which other servers may need. */
function mergeLimit(sent: YamlNode | undefined, own: YamlNode): YamlNode {
  if (sent?.kind !== 'map' || own.kind !== 'map') return own
  const { entries } = withoutNulls(own)
  const names = entries.map(nameOf)
  const replaced = new Set(names.includes('window') ? [...names, 'unit'] : names)
  const kept = sent.entries.filter((entry) => !replaced.has(nameOf(entry)))
  return { ...sent, entries: [...kept, ...entries] }
}
