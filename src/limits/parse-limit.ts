// Reads one `rate_limit` of a rules file. The caller adds it to the tree.
import { type Algorithm, type Limit, REQUESTS_MAX } from './algorithm.ts'
import { algorithms, defaultAlgorithm, findAlgorithm } from './algorithms.ts'
import { type Unit, units, unitSeconds } from './descriptor.ts'
import {
  type Fields,
  fieldOf,
  lineOf,
  readCount,
  readFlag,
  readMaps,
  readOptionalFlag,
  readString,
} from './parse-fields.ts'
import { type StoreErrorMode, storeErrorModes } from './rule.ts'

/** The content of one `rate_limit`. */
export interface ParsedLimit {
  readonly name: string | undefined
  readonly replaces: readonly string[]
  readonly algorithm: Algorithm
  /** `undefined` = unlimited. */
  readonly limit: Limit | undefined
  readonly unit: Unit | undefined
  readonly onStoreError: StoreErrorMode
}

/** The defaults of fields that a limit does not set. */
export interface LimitDefaults {
  /** If false, `deny_consumes` defaults to false for every algorithm. */
  readonly denyConsumes: boolean
  /** The algorithm, unless it does not support the limit. */
  readonly algorithm: Algorithm
}

/** Minimum `window`, in milliseconds. */
const WINDOW_MS_MIN = 1
/** Maximum `window`, in milliseconds: 366 days. */
const WINDOW_MS_MAX = 366 * 86_400_000
/** Maximum number of names in `replaces`. */
export const REPLACES_MAX = 100

const windowForm = /^([0-9]{1,12})(ms|s|m|h|d)$/
const windowUnitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const fieldsOfLimits = ['algorithm', 'window', 'burst', 'deny_consumes', 'on_store_error'] as const

/** Reads a limit. Adds faults to the diagnostics and replaces invalid values with valid ones. */
export function parseLimit(fields: Fields, { denyConsumes, ...given }: LimitDefaults): ParsedLimit {
  const name = readString(fields, 'name').text
  const replaces = readReplaces(fields, name)
  const isUnlimited = readFlag(fields, 'unlimited')
  if (isUnlimited) checkUnlimited(fields)
  const named = readAlgorithm(fields)
  const { windowUs, unit } = isUnlimited ? noWindow : readWindow(fields)
  const algorithm =
    named ?? (isUnlimited ? defaultAlgorithm : algorithmIfUnset(fields, given, windowUs))
  const defaults = { windowUs, denyConsumes: denyConsumes && algorithm.denyConsumesByDefault }
  const limit = isUnlimited ? undefined : readLimit(fields, algorithm, defaults)
  const onStoreError = readStoreErrorMode(fields)
  return { name: name === '' ? undefined : name, replaces, algorithm, limit, unit, onStoreError }
}

const noWindow = { windowUs: 0, unit: undefined }

function isUnit(text: string): text is Unit {
  return Object.hasOwn(units, text)
}

function checkUnlimited(fields: Fields): void {
  const unit = readString(fields, 'unit')
  if (isUnit(unit.text.toUpperCase())) {
    fields.diagnostics.fault(unit.line, 'should not specify rate limit unit when unlimited')
  }
  for (const field of fieldsOfLimits) {
    if (fieldOf(fields, field) !== undefined) {
      const message = `should not specify ${field} when unlimited`
      fields.diagnostics.fault(lineOf(fields, field), message)
    }
  }
}

function readReplaces(fields: Fields, ownName: string): readonly string[] {
  const entries = readMaps(fields, 'replaces')
  const { diagnostics } = fields
  if (entries.length > REPLACES_MAX) {
    const message = `replaces must have at most ${REPLACES_MAX} names: it has more`
    diagnostics.fault(lineOf(fields, 'replaces'), message)
    return []
  }
  return entries.map((map) => {
    const { text, line } = readString({ map, diagnostics }, 'name')
    if (text === '') diagnostics.fault(line, 'should not have an empty replaces entry')
    else if (text === ownName) {
      diagnostics.fault(line, 'replaces should not contain name of same descriptor')
    }
    return text
  })
}

/** The algorithm of a limit that sets none: the given default, if it supports the limit. */
function algorithmIfUnset(
  fields: Fields,
  { algorithm }: Pick<LimitDefaults, 'algorithm'>,
  windowUs: number,
): Algorithm {
  if (algorithm === defaultAlgorithm) return algorithm
  const requests = countOf(fields, 'requests_per_unit') ?? 0
  const burst = countOf(fields, 'burst') ?? requests
  const isCountable =
    requests <= algorithm.maxRequests &&
    algorithm.checkLimit({ requests, windowUs, burst, denyConsumes: false }) === undefined
  if (isCountable) return algorithm
  const message = `the default algorithm ${algorithm.name} does not support this limit`
  fields.diagnostics.warn(fields.map.line, `${message}: ${defaultAlgorithm.name} is used`)
  return defaultAlgorithm
}

function countOf(fields: Fields, key: string): number | undefined {
  const value = fieldOf(fields, key)
  return value?.kind === 'int' ? Number(value.value) : undefined
}

function readAlgorithm(fields: Fields): Algorithm | undefined {
  const { text, line } = readString(fields, 'algorithm')
  if (text === '') return undefined
  const algorithm = findAlgorithm(text)
  if (algorithm !== undefined) return algorithm
  const names = algorithms.map(({ name }) => name).join(', ')
  fields.diagnostics.fault(line, `algorithm must be one of ${names}: it is '${text}'`)
  return defaultAlgorithm
}

function readStoreErrorMode(fields: Fields): StoreErrorMode {
  const { text, line } = readString(fields, 'on_store_error')
  if (text === '') return 'local'
  const mode = storeErrorModes.find((each) => each === text)
  if (mode !== undefined) return mode
  const names = storeErrorModes.join(', ')
  fields.diagnostics.fault(line, `on_store_error must be one of ${names}: it is '${text}'`)
  return 'local'
}

interface Window {
  readonly windowUs: number
  readonly unit: Unit | undefined
}

function readWindow(fields: Fields): Window {
  if (fieldOf(fields, 'window') === undefined) return readUnit(fields)
  if (fieldOf(fields, 'unit') !== undefined) {
    const message = 'unit and window are alternatives: only one of them is allowed'
    fields.diagnostics.fault(lineOf(fields, 'window'), message)
  }
  const { text, line } = readString(fields, 'window')
  const [, count, unit = ''] = windowForm.exec(text) ?? []
  const windowMs = Number(count) * (windowUnitMs[unit] ?? NaN)
  if (windowMs >= WINDOW_MS_MIN && windowMs <= WINDOW_MS_MAX) {
    return { windowUs: windowMs * 1000, unit: unitOf(windowMs / 1000) }
  }
  const allowed = 'a whole number and ms, s, m, h or d, such as 30s, from 1ms to 366d'
  fields.diagnostics.fault(line, `window must be ${allowed}: it is '${text}'`)
  return { windowUs: 1_000_000, unit: undefined }
}

function readUnit(fields: Fields): Window {
  const { text, line } = readString(fields, 'unit')
  const unit = text.toUpperCase()
  if (isUnit(unit)) return { windowUs: unitSeconds[unit] * 1_000_000, unit }
  fields.diagnostics.fault(line, `invalid rate limit unit '${text}'`)
  return { windowUs: 1_000_000, unit: undefined }
}

function unitOf(seconds: number): Unit | undefined {
  return (Object.keys(units) as Unit[]).find((unit) => unitSeconds[unit] === seconds)
}

function readLimit(
  fields: Fields,
  algorithm: Algorithm,
  { windowUs, ...defaults }: { windowUs: number; denyConsumes: boolean },
): Limit {
  const max = algorithm.maxRequests
  const requests = readCount(fields, 'requests_per_unit', { min: 0, max }) ?? 0
  if (fieldOf(fields, 'requests_per_unit') === undefined) {
    const message = 'requests_per_unit is missing, which means 0: every request is denied'
    fields.diagnostics.warn(fields.map.line, message)
  }
  const burst = readBurst(fields, algorithm) ?? requests
  const denyConsumes = readOptionalFlag(fields, 'deny_consumes') ?? defaults.denyConsumes
  const limit = { requests, windowUs, burst, denyConsumes }
  const fault = algorithm.checkLimit(limit)
  if (fault !== undefined) {
    const line = lineOf(fields, 'requests_per_unit')
    fields.diagnostics.fault(line, `${algorithm.name} ${fault}`)
  }
  return limit
}

function readBurst(fields: Fields, algorithm: Algorithm): number | undefined {
  if (algorithm.takesBurst) return readCount(fields, 'burst', { min: 1, max: REQUESTS_MAX })
  if (fieldOf(fields, 'burst') === undefined) return undefined
  const names = algorithms.filter(({ takesBurst }) => takesBurst).map(({ name }) => name)
  const message = `burst is only for ${names.join(', ')}: the algorithm is '${algorithm.name}'`
  fields.diagnostics.fault(lineOf(fields, 'burst'), message)
  return undefined
}
