// Collects what is wrong in rule files, all of it, up to a bound.
import type { RuleFault } from './rule.ts'

/** Faults that are listed at once; a set with more is told so. */
export const FAULTS_MAX = 1000

/** Characters of one message; what a file holds may be longer. */
const MESSAGE_LENGTH_MAX = 1000

/** A fault as people read it: `file:line: message`. */
export function renderFault({ file, line, message }: RuleFault): string {
  return `${file}:${line}: ${message}`
}

/** What is found in one file, told as it is found. */
export interface Diagnostics {
  /** What keeps the rules from being used. */
  readonly fault: (line: number, message: string) => void
  /** What the reference loads too, but hardly means what its writer meant. */
  readonly warn: (line: number, message: string) => void
}

/** What is found in all files. */
export interface AllDiagnostics {
  /** Where the diagnostics of one file go. */
  of(file: string): Diagnostics
  /** All faults, file by file in their order, then by line. */
  faults(): readonly RuleFault[]
  /** All remarks, in the same order. */
  remarks(): readonly RuleFault[]
}

/** An empty list. */
export function createDiagnostics(): AllDiagnostics {
  const faults: RuleFault[][] = []
  const remarks: RuleFault[][] = []
  return {
    of(file) {
      const collector = (lists: RuleFault[][]) => {
        const list: RuleFault[] = []
        lists.push(list)
        return (line: number, message: string) => {
          if (list.length <= FAULTS_MAX) list.push({ file, line, message: shortened(message) })
        }
      }
      return { fault: collector(faults), warn: collector(remarks) }
    },
    faults: () => listOf(faults),
    remarks: () => listOf(remarks),
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
