// Runs Node.js as a step of the tests and reports the cause of a failure, also of a timeout.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Bounds of a step. */
interface StepBounds {
  /** In ms. */
  readonly timeout: number
  /** The file that the step writes last; it must exit within EXIT_MS_MAX (`exitMsMax`) of it. */
  readonly result?: { readonly path: string; readonly exitMsMax?: number }
}

/** Jest's reporter of open handles takes 30 s of it. */
const EXIT_MS_MAX = 90_000
const POLL_MS = 500
const LOW_PRIORITY = ['nice', '-n', '19'] as const

/**
 * Runs Node.js with `args` within the bounds; resolves to the cause of its failure, or `undefined`
 * if it exited with 0.
 */
export async function runNode(
  args: readonly string[],
  options: StepBounds & { env: NodeJS.ProcessEnv; isLowPriority?: boolean },
): Promise<string | undefined> {
  const { env, isLowPriority = false, ...bounds } = options
  const line = [...(isLowPriority ? LOW_PRIORITY : []), process.execPath, ...args]
  const [command = '', ...rest] = line
  return failureOf(spawn(command, rest, { stdio: 'inherit', env }), bounds)
}

/** Waits until a step has exited and terminates it at its bounds; resolves like `runNode`. */
export async function failureOf(
  child: ChildProcess,
  { timeout, result }: StepBounds,
): Promise<string | undefined> {
  const exitMsMax = result?.exitMsMax ?? EXIT_MS_MAX
  const startedMs = performance.now()
  let resultMs: number | undefined
  let cause: string | undefined
  const poll = setInterval(() => {
    // A process that hangs can ignore SIGTERM.
    if (cause !== undefined) child.kill('SIGKILL')
    const nowMs = performance.now()
    if (result !== undefined && existsSync(result.path)) resultMs ??= nowMs
    if (resultMs !== undefined && nowMs - resultMs > exitMsMax)
      cause = `did not exit within ${secondsOf(exitMsMax)} of its result`
    else if (nowMs - startedMs > timeout) cause = `timed out after ${secondsOf(timeout)}`
    if (cause !== undefined) child.kill('SIGTERM')
  }, POLL_MS)
  return new Promise<string | undefined>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      const exit = signal === null ? `exit code ${String(code)}` : `terminated by ${signal}`
      resolve(code === 0 ? undefined : (cause ?? exit))
    })
  }).finally(() => {
    clearInterval(poll)
  })
}

function secondsOf(ms: number): string {
  return `${String(ms / 1000)} s`
}
