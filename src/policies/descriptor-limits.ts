// The limits of one policy in the terms of rule files: what its RateLimitConfig contains. Pure.
import type { PolicyEntry, PolicySpec } from './policy.ts'

/** An entry; an empty value matches any. */
export type Entry = Required<Pick<PolicyEntry, 'key' | 'value'>>

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

/** A value of a field. */
export type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value }

/** The limits of a spec. */
export function descriptorLimitsOf(
  spec: PolicySpec,
  options: {
    /** The hashes of its API keys, if it references Secrets. */
    readonly hashes: readonly string[] | undefined
    /** Precedes the names of the limits, such as `namespace/`. */
    readonly namePrefix: string
  },
): DescriptorLimits {
  const { hashes, namePrefix } = options
  return {
    match: spec.match.map(({ key, value = '' }) => ({
      key: key.toWellFormed(),
      value: value.toWellFormed(),
    })),
    ...(hashes && { hashes }),
    isAudit: spec.mode === 'Audit',
    limits: limitFieldsOf(spec, namePrefix),
  }
}

function limitFieldsOf(spec: PolicySpec, namePrefix: string): LimitFields[] {
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

/** Whether a value is a list. */
export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value)
}
