// Collects all faults and warnings of rule files, up to a bound.
import type { RuleFault } from './rule.ts'

/** Faults listed at most. */
export const FAULTS_MAX = 1000

/** Characters of one message at most; values in a file may be longer. */
const MESSAGE_LENGTH_MAX = 1000

/** A fault as `file:line: message`. */
export function renderFault({ file, line, message }: RuleFault): string {
  return `${file}:${line}: ${message}`
}

/** Faults and warnings of one file. */
export interface Diagnostics {
  /** Adds a fault, which rejects the set of rules. */
  readonly fault: (line: number, message: string) => void
  /** Adds a warning: accepted by the reference too, but probably not what the author meant. */
  readonly warn: (line: number, message: string) => void
}

/** Faults and warnings of all files. */
export interface AllDiagnostics {
  /** The diagnostics of one file. */
  of(file: string): Diagnostics
  /** All faults, in the order of the files, then by line. */
  faults(): readonly RuleFault[]
  /** All warnings, in the same order. */
  warnings(): readonly RuleFault[]
}

/** An empty list. */
export function createDiagnostics(): AllDiagnostics {
  const faults: RuleFault[][] = []
  const warnings: RuleFault[][] = []
  return {
    of(file) {
      const collector = (lists: RuleFault[][]) => {
        const list: RuleFault[] = []
        lists.push(list)
        return (line: number, message: string) => {
          if (list.length <= FAULTS_MAX) list.push({ file, line, message: shortened(message) })
        }
      }
      return { fault: collector(faults), warn: collector(warnings) }
    },
    faults: () => listOf(faults),
    warnings: () => listOf(warnings),
  }
}

function shortened(message: string): string {
  const { length } = message
  return length <= MESSAGE_LENGTH_MAX ? message : `${message.slice(0, MESSAGE_LENGTH_MAX)}...`
}

function listOf(lists: readonly (readonly RuleFault[])[]): readonly RuleFault[] {
  const all = lists.flatMap((list) => list.toSorted((a, b) => a.line - b.line))
  const beyond = all[FAULTS_MAX]
  if (beyond === undefined) return all
  const message = `more than ${FAULTS_MAX} faults: the rest is not listed`
  return [...all.slice(0, FAULTS_MAX), { ...beyond, message }]
}
