// The dependency `strace`, which records the order in which a process writes, syncs and responds.
import { findAptDependency } from './apt.ts'

/** Finds or installs strace. Resolves with its command. */
export function findStrace(): Promise<string> {
  return findAptDependency('strace')
}

/** One system call, and the lines of the trace at which it starts and returns. */
export interface SystemCall {
  readonly name: string
  /** The file or socket of its first argument, a file descriptor. */
  readonly file: string
  /** The bytes of its strings, joined. */
  readonly bytes: Buffer
  readonly result: number
  readonly startLine: number
  readonly endLine: number
}

/**
 * The arguments before a command that record its calls of these names in `file`. The command is the
 * direct child; strace traces it from a separate process, and exits after it.
 */
export function straceArguments(file: string, names: readonly string[]): string[] {
  const trace = `trace=${names.join(',')}`
  return ['strace', '-D', '-f', '-q', '-y', '-xx', '-s', '8192', '-e', trace, '-o', file]
}

/** Parses the calls of a trace, in the order in which they return. */
export function parseTrace(trace: string): SystemCall[] {
  const open = new Map<string, { prefix: string; startLine: number }>()
  const calls: SystemCall[] = []
  trace.split('\n').forEach((line, index) => {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const unfinished = /^(.*) <unfinished \.\.\.>$/.exec(rest)
    if (unfinished !== null) {
      open.set(thread, { prefix: unfinished[1] ?? '', startLine: index })
      return
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
    const before = resumed === null ? undefined : open.get(thread)
    const complete = resumed === null ? rest : `${before?.prefix ?? ''}${resumed[1] ?? ''}`
    const call = parseCall(complete)
    if (call !== undefined)
      calls.push({ ...call, startLine: before?.startLine ?? index, endLine: index })
  })
  return calls
}

function parseCall(line: string): Omit<SystemCall, 'startLine' | 'endLine'> | undefined {
  const matched = /^(\w+)\(\d+<((?:[^>\\]|\\.)*)>(.*)\) += (-?\d+)/s.exec(line)
  if (matched === null) return undefined
  const [, name = '', file = '', inside = '', result = ''] = matched
  const strings = [...inside.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)]
  const hex = strings.map(([, escapes = '']) => escapes.replaceAll('\\x', '')).join('')
  const path = file.replace(/\\x([0-9a-f]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
  return { name, file: path, bytes: Buffer.from(hex, 'hex'), result: Number(result) }
}
