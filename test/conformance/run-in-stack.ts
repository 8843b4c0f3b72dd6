// Opens a stack: stack.ts in a network, mount and process namespace of its own. Needs root. When
// this process ends, however it does, so does the stack with all that it started.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { withinDeadline } from '../kit/wait-for.ts'
import type { StackReport, StackTask } from './stack-task.ts'

const program = fileURLToPath(new URL('stack.ts', import.meta.url))
const unshare = ['--mount', '--net', '--pid', '--fork', '--kill-child=KILL', '--mount-proc']

/** More than the sum of what stack.ts may wait for at most while it starts. */
const OPEN_MS_MAX = 300_000
/** What a stack may take besides its commands, once it runs. */
const CLOSE_MS_MAX = 60_000

/** The results of the commands, or why they were not run. */
export type StackEnd = Extract<StackReport, { kind: 'done' | 'failed' }>

/** A stack that is up and waits, or that has failed. */
export interface Stack {
  /** Runs the commands, then stops the stack. */
  go(): Promise<StackEnd>
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
  const ask = async (message: object, msMax: number): Promise<StackReport> => {
    child.send(message, () => undefined) // a stack that is gone is told by its end
    try {
      return await withinDeadline('the stack', next(), msMax)
    } catch (error) {
      return { kind: 'failed', why: (error as Error).message }
    }
  }
  const opened = await ask(task, OPEN_MS_MAX)
  return {
    async go() {
      const msMax = task.commands.length * task.commandMsMax + CLOSE_MS_MAX
      const end = opened.kind === 'ready' ? await ask({ go: true }, msMax) : opened
      kill()
      return end.kind === 'ready' ? { kind: 'failed', why: 'it did not run the commands' } : end
    },
  }
}

/** Returns the reports of a stack one by one; its exit is the last report. */
function reportsOf(child: ChildProcess): () => Promise<StackReport> {
  const waiting: ((report: StackReport) => void)[] = []
  const reports: StackReport[] = []
  let last: StackReport | undefined
  const tell = (report: StackReport) => {
    const first = waiting.shift()
    if (first === undefined) reports.push(report)
    else first(report)
  }
  const end = (why: string) => {
    last ??= { kind: 'failed', why }
    while (waiting.length > 0) tell(last)
  }
  child.on('message', (report) => {
    tell(report as StackReport)
  })
  child.on('error', (error) => {
    end(error.message)
  })
  child.on('exit', (code, signal) => {
    end(`the stack ended (${String(code ?? signal)})`)
  })
  return () =>
    new Promise((resolve) => {
      const report = reports.shift() ?? last
      if (report === undefined) waiting.push(resolve)
      else resolve(report)
    })
}
