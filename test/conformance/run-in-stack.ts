// Opens a stack: stack.ts in its own network, mount and process namespaces. Needs root. When this
// process exits for any reason, the stack and all its processes are killed.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { withinDeadline } from '../kit/wait-for.ts'
import type { StackReport, StackTask } from './stack-task.ts'

const program = fileURLToPath(new URL('stack.ts', import.meta.url))
const unshare = ['--mount', '--net', '--pid', '--fork', '--kill-child=KILL', '--mount-proc']

/** Longer than the sum of the timeouts of stack.ts while it starts. */
const OPEN_MS_MAX = 300_000
/** The time that a running stack may take in addition to its commands. */
const CLOSE_MS_MAX = 60_000

/** The results of the commands, or the reason why they were not run. */
export type StackResult = Extract<StackReport, { kind: 'done' | 'failed' }>

/** A stack that is ready, or that has failed. */
export interface Stack {
  /** Runs the commands, then stops the stack. */
  go(): Promise<StackResult>
}

/** Starts a stack. Never throws: `go` returns the failure. */
export async function openStack(task: StackTask): Promise<Stack> {
  const child = spawn('unshare', [...unshare, process.execPath, program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.removeListener('exit', kill))
  const next = reportsOf(child)
  const request = async (message: object, msMax: number): Promise<StackReport> => {
    child.send(message, () => undefined) // if the stack has exited, reportsOf() returns it
    try {
      return await withinDeadline('the stack', next(), msMax)
    } catch (error) {
      return { kind: 'failed', reason: (error as Error).message }
    }
  }
  const opened = await request(task, OPEN_MS_MAX)
  return {
    async go() {
      const msMax = task.commands.length * task.commandMsMax + CLOSE_MS_MAX
      const result = opened.kind === 'ready' ? await request({ go: true }, msMax) : opened
      kill()
      return result.kind === 'ready'
        ? { kind: 'failed', reason: 'it did not run the commands' }
        : result
    },
  }
}

/** Returns the reports of a stack one by one; its exit is the last report. */
function reportsOf(child: ChildProcess): () => Promise<StackReport> {
  const waiting: ((report: StackReport) => void)[] = []
  const reports: StackReport[] = []
  let last: StackReport | undefined
  const deliver = (report: StackReport) => {
    const first = waiting.shift()
    if (first === undefined) reports.push(report)
    else first(report)
  }
  const stop = (reason: string) => {
    last ??= { kind: 'failed', reason }
    while (waiting.length > 0) deliver(last)
  }
  child.on('message', (report) => {
    deliver(report as StackReport)
  })
  child.on('error', (error) => {
    stop(error.message)
  })
  child.on('exit', (code, signal) => {
    stop(`the stack exited (${String(code ?? signal)})`)
  })
  return () =>
    new Promise((resolve) => {
      const report = reports.shift() ?? last
      if (report === undefined) waiting.push(resolve)
      else resolve(report)
    })
}
