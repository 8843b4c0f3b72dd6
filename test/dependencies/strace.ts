// The dependency `strace`: shows in which order a process writes, syncs and responds.
import { findAptDependency } from './apt.ts'

/** Makes sure that strace can be run. */
export function findStrace(): Promise<string> {
  return findAptDependency('strace')
}

/** One system call; its place in the trace when it began and when it ended. */
export interface SystemCall {
  readonly name: string
  /** What its first argument, a file descriptor, stands for. */
  readonly file: string
  /** The bytes of its strings, joined. */
  readonly bytes: Buffer
  readonly result: number
  readonly began: number
  readonly ended: number
}

/**
 * What to run before a command, so that its calls of these names are written to `file`. The command
 * is the direct child; strace watches from aside, and ends after it.
 */
export function straceArguments(file: string, names: readonly string[]): string[] {
  const trace = `trace=${names.join(',')}`
  return ['strace', '-D', '-f', '-q', '-y', '-xx', '-s', '8192', '-e', trace, '-o', file]
}

/** The calls of a trace, in the order in which they ended. */
export function parseTrace(text: string): SystemCall[] {
  const open = new Map<string, { head: string; began: number }>()
  const calls: SystemCall[] = []
  text.split('\n').forEach((line, place) => {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const unfinished = /^(.*) <unfinished \.\.\.>$/.exec(rest)
    if (unfinished !== null) {
      open.set(thread, { head: unfinished[1] ?? '', began: place })
      return
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
    const before = resumed === null ? undefined : open.get(thread)
    const whole = resumed === null ? rest : `${before?.head ?? ''}${resumed[1] ?? ''}`
    const call = parseCall(whole)
    if (call !== undefined) calls.push({ ...call, began: before?.began ?? place, ended: place })
  })
  return calls
}

function parseCall(text: string): Omit<SystemCall, 'began' | 'ended'> | undefined {
  const matched = /^(\w+)\(\d+<((?:[^>\\]|\\.)*)>(.*)\) += (-?\d+)/s.exec(text)
  if (matched === null) return undefined
  const [, name = '', file = '', inside = '', result = ''] = matched
  const strings = [...inside.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)]
  const hex = strings.map(([, escapes = '']) => escapes.replaceAll('\\x', '')).join('')
  const path = file.replace(/\\x([0-9a-f]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
  return { name, file: path, bytes: Buffer.from(hex, 'hex'), result: Number(result) }
}
