// Runs the Go of the machine on a module of the checkout, whose go.sum pins every source. Installs
// no Go, and updates no module.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** For programs in Go, such as Helm: by default, half of its CPU time is garbage collection. */
export const goMemory = { GOGC: '800', GOMEMLIMIT: '1GiB' } as const

const run = promisify(execFile)

const GO_MINOR_MIN = 26
const PROBE_MS_MAX = 20_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
const REASON_CHARACTERS_MAX = 4000

/** The folder, the timeout and the environment of a run. */
export interface GoRun {
  /** The folder of the module. */
  readonly cwd: string
  readonly msMax: number
  readonly env?: NodeJS.ProcessEnv
}

/** Runs `go` with these arguments. Resolves with its output; throws the end of its errors. */
export async function runGo(args: readonly string[], given: GoRun): Promise<string> {
  await checkGo()
  const { cwd, msMax } = given
  // Programs without C run on any Linux, and in images that contain nothing else.
  const fixed = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly -buildvcs=false', CGO_ENABLED: '0' }
  const env = { ...process.env, ...fixed, ...given.env }
  const limits = { timeout: msMax, killSignal: 'SIGINT', maxBuffer: OUTPUT_BYTES_MAX } as const
  try {
    const { stdout } = await run('go', args, { cwd, env, ...limits })
    return stdout
  } catch (error) {
    const { killed, stderr } = error as { killed?: boolean; stderr?: string }
    const timedOut = `timed out after ${msMax / 1000} s; the next run continues the build`
    const reason = killed === true ? timedOut : (stderr ?? '').slice(-REASON_CHARACTERS_MAX)
    throw new Error(`go ${args[0] ?? ''} in ${cwd}: ${reason}`, { cause: error })
  }
}

async function checkGo(): Promise<void> {
  const required = `Go 1.${GO_MINOR_MIN} or newer is required on PATH (https://go.dev/dl)`
  const options = { timeout: PROBE_MS_MAX, env: { ...process.env, GOTOOLCHAIN: 'local' } }
  const { stdout } = await run('go', ['env', 'GOVERSION'], options).catch((error: unknown) => {
    throw new Error(`${required}: go cannot be run`, { cause: error })
  })
  const minor = Number(/^go1\.(\d+)/.exec(stdout)?.[1])
  if (!(minor >= GO_MINOR_MIN))
    throw new Error(`${required}: the installed version is ${stdout.trim()}`)
}
