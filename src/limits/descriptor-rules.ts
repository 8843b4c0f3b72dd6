// The rules of one descriptor: one limit or several, with their common settings.
import {
  type Fields,
  fieldOf,
  lineOf,
  readFlag,
  readMetadata,
  rejectField,
} from './parse-fields.ts'
import { type LimitDefaults, parseLimit } from './parse-limit.ts'
import type { YamlMap } from './parse-yaml.ts'
import type { Rule } from './rule.ts'
import { lengthPrefixed } from './rule-tree.ts'

/** Maximum number of limits in one descriptor. */
const LIMITS_MAX = 8

/** Reads the rules of a descriptor with this path and identity. */
export function rulesOf(
  fields: Fields,
  { path, identity, defaults }: { path: string; identity: string; defaults: LimitDefaults },
): readonly Rule[] {
  const limits = readLimits(fields)
  const isShadow = readFlag(fields, 'shadow_mode')
  const isQuota = readFlag(fields, 'quota_mode')
  const hasDetailedMetric = readFlag(fields, 'detailed_metric')
  const metadata = readMetadata(fields)
  if (isQuota && limits.length > 1) {
    const message = 'quota_mode cannot be used with several limits'
    fields.diagnostics.fault(lineOf(fields, 'quota_mode'), message)
  }
  return limits.map((map, at) => {
    const parsed = parseLimit({ map, diagnostics: fields.diagnostics }, defaults)
    const windowUs = parsed.limit?.windowUs ?? 0
    const limitIdentity = [parsed.algorithm.name, String(windowUs), String(at)]
      .map(lengthPrefixed)
      .join('')
    // A literal, because all rules should have the same shape in memory.
    return {
      path,
      identity: identity + limitIdentity,
      name: parsed.name,
      replaces: parsed.replaces,
      algorithm: parsed.algorithm,
      limit: parsed.limit,
      unit: parsed.unit,
      isShadow,
      isQuota,
      onStoreError: parsed.onStoreError,
      metadata,
      hasDetailedMetric,
    }
  })
}

/** `rate_limit` or `rate_limits`: a mapping or a list of them. */
function readLimits(fields: Fields): readonly YamlMap[] {
  const one = fieldOf(fields, 'rate_limit')
  const several = fieldOf(fields, 'rate_limits')
  if (one !== undefined && several !== undefined) {
    const message = 'rate_limit and rate_limits are alternatives: only one of them is allowed'
    fields.diagnostics.fault(several.line, message)
  }
  const key = one === undefined ? 'rate_limits' : 'rate_limit'
  const value = one ?? several
  if (value === undefined) return []
  if (value.kind === 'map') return [value]
  if (value.kind !== 'list') {
    rejectField(fields, value, { key, allowed: 'a mapping or a list of mappings' })
    return []
  }
  const { length } = value.items
  if (length === 0 || length > LIMITS_MAX) {
    fields.diagnostics.fault(
      value.line,
      `${key} must have 1 to ${LIMITS_MAX} limits: it has ${length}`,
    )
    return []
  }
  return value.items.filter((item) => item.kind === 'map')
}
