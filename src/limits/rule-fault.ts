// Collects all faults and warnings of rule files or xDS resources, up to a bound.
import type { RuleFault } from './rule.ts'

/** Maximum number of faults per set that are kept with their messages; others are only counted. */
export const FAULTS_KEPT_MAX = 1000

/** Maximum length of a message, because values in a file may be longer. */
const MESSAGE_LENGTH_MAX = 1000

/** A fault as `file:line: message`, or as `resource "name": path: message`. */
export function renderFault({ file, line, path, message }: RuleFault): string {
  if (path === undefined) return `${file}:${line}: ${message}`
  return [file, path, message].filter((text) => text !== '').join(': ')
}

/** Maximum number of faults that are logged; the others are only counted. */
export const FAULTS_LOGGED_MAX = 50

/** Log fields of faults or warnings: their number, and the first ones as lines. */
export function faultFields(faults: readonly RuleFault[]) {
  return {
    faultCount: countFaults(faults),
    faults: faults.slice(0, FAULTS_LOGGED_MAX).map(renderFault),
  }
}

/** The number of faults, including those that are not listed. */
export function countFaults(faults: readonly RuleFault[]): number {
  return faults.reduce((count, { omittedCount = 1 }) => count + omittedCount, 0)
}

/** Faults and warnings of one file. */
export interface Diagnostics {
  /** Adds a fault; a set of rules with faults is rejected. */
  readonly fault: (line: number, message: string) => void
  /** Adds a warning about valid rules that are probably a mistake. */
  readonly warn: (line: number, message: string) => void
}

/** Faults and warnings of all files. */
export interface AllDiagnostics {
  /** The diagnostics of one file. For a resource, `pathOf` renders the path of node `line`. */
  of(file: string, pathOf?: (line: number) => string): Diagnostics
  /** All faults, in the order of the files, then by line. */
  faults(): readonly RuleFault[]
  /** All warnings, in the same order. */
  warnings(): readonly RuleFault[]
}

/** The faults or warnings of one file. */
interface FaultList {
  /** The first ones, at most one more than FAULTS_KEPT_MAX. */
  readonly kept: RuleFault[]
  count: number
}

/** Creates empty diagnostics. */
export function createDiagnostics(): AllDiagnostics {
  const faults: FaultList[] = []
  const warnings: FaultList[] = []
  return {
    of(file, pathOf) {
      const collector = (lists: FaultList[]) => {
        const list: FaultList = { kept: [], count: 0 }
        lists.push(list)
        return (line: number, message: string) => {
          list.count += 1
          if (list.kept.length > FAULTS_KEPT_MAX) return
          const path = pathOf && { path: pathOf(line) }
          list.kept.push({ file, line, ...path, message: truncated(message) })
        }
      }
      return { fault: collector(faults), warn: collector(warnings) }
    },
    faults: () => listOf(faults, 'faults'),
    warnings: () => listOf(warnings, 'warnings'),
  }
}

function truncated(message: string): string {
  const { length } = message
  return length <= MESSAGE_LENGTH_MAX ? message : `${message.slice(0, MESSAGE_LENGTH_MAX)}...`
}

function listOf(lists: readonly FaultList[], kind: string): readonly RuleFault[] {
  const all = lists.flatMap(({ kept }) => kept.toSorted((a, b) => a.line - b.line))
  const beyond = all[FAULTS_KEPT_MAX]
  if (beyond === undefined) return all
  const omittedCount = lists.reduce((sum, { count }) => sum + count, -FAULTS_KEPT_MAX)
  const message = `${kind} that are not listed: ${omittedCount}`
  return [...all.slice(0, FAULTS_KEPT_MAX), { ...beyond, message, omittedCount }]
}
