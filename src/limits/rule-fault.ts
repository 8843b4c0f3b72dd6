// Collects all faults and warnings of rule files or xDS resources, up to a bound.
import type { RuleFault } from './rule.ts'

/** Maximum number of listed faults. */
export const FAULTS_MAX = 1000

/** Maximum length of a message, because values in a file may be longer. */
const MESSAGE_LENGTH_MAX = 1000

/** A fault as `file:line: message`, or as `resource "name": path: message`. */
export function renderFault({ file, line, path, message }: RuleFault): string {
  if (path === undefined) return `${file}:${line}: ${message}`
  return [file, path, message].filter((text) => text !== '').join(': ')
}

/** Further faults are counted, not listed. */
export const FAULTS_LISTED_MAX = 50

/** Log fields of faults or warnings: their number, and the first ones as lines. */
export function faultFields(faults: readonly RuleFault[]) {
  return {
    faultCount: faults.length,
    faults: faults.slice(0, FAULTS_LISTED_MAX).map(renderFault),
  }
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
  /** The diagnostics of one file; `pathOf` renders the path of a line that is a node's number. */
  of(file: string, pathOf?: (line: number) => string): Diagnostics
  /** All faults, in the order of the files, then by line. */
  faults(): readonly RuleFault[]
  /** All warnings, in the same order. */
  warnings(): readonly RuleFault[]
}

/** Creates empty diagnostics. */
export function createDiagnostics(): AllDiagnostics {
  const faults: RuleFault[][] = []
  const warnings: RuleFault[][] = []
  return {
    of(file, pathOf) {
      const collector = (lists: RuleFault[][]) => {
        const list: RuleFault[] = []
        lists.push(list)
        return (line: number, message: string) => {
          if (list.length > FAULTS_MAX) return
          const path = pathOf && { path: pathOf(line) }
          list.push({ file, line, ...path, message: truncated(message) })
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

function listOf(lists: readonly (readonly RuleFault[])[], kind: string): readonly RuleFault[] {
  const all = lists.flatMap((list) => list.toSorted((a, b) => a.line - b.line))
  const beyond = all[FAULTS_MAX]
  if (beyond === undefined) return all
  const message = `more than ${FAULTS_MAX} ${kind}: the others are not listed`
  return [...all.slice(0, FAULTS_MAX), { ...beyond, message }]
}
