// A rate-limit request: a domain and descriptors, as Envoy sends them.

/** The units of a limit, with the names and numbers of Envoy's API. */
export const units = {
  SECOND: 1,
  MINUTE: 2,
  HOUR: 3,
  DAY: 4,
  MONTH: 5,
  YEAR: 6,
  WEEK: 7,
} as const

/** Name of a unit. */
export type Unit = keyof typeof units

/** Seconds of a unit; a month has 30 days, a year 365. */
export const unitSeconds: Readonly<Record<Unit, number>> = {
  SECOND: 1,
  MINUTE: 60,
  HOUR: 3600,
  DAY: 86_400,
  WEEK: 604_800,
  MONTH: 2_592_000,
  YEAR: 31_536_000,
}

/** One key and value of a descriptor. */
export interface Entry {
  readonly key: string
  readonly value: string
}

/** A descriptor of a request. */
export interface Descriptor {
  readonly entries: readonly Entry[]
  /** A limit from the caller, which overrides the rules. */
  readonly override?: { readonly requestsPerUnit: number; readonly unit: Unit } | undefined
  /** Hits of this descriptor: 0 = read, negative = refund; `undefined`: those of the request. */
  readonly hits?: number | undefined
}

/** Maximum number of descriptors in one call; Envoy sends a few. */
export const DESCRIPTORS_MAX = 100
/** Maximum number of entries in one descriptor. */
export const ENTRIES_MAX = 100
/** Maximum hits of one descriptor; larger values count as this one. */
export const HITS_MAX = 2 ** 32 - 1

/** One call. */
export interface LimitRequest {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  /** Hits of the descriptors without `hits`; at least 1. */
  readonly hits: number
}
