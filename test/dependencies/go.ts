// Go, as it is on the machine: finds it and runs it over a module of the checkout, whose go.sum
// pins every source it may use. Never looks for newer versions and installs no Go.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

const GO_MINOR_MIN = 26
const PROBE_MS_MAX = 20_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
const REASON_CHARACTERS_MAX = 4000

/** What a run of Go may take and where it works. */
export interface GoRun {
  /** Folder of the module. */
  readonly cwd: string
  readonly msMax: number
  readonly env?: NodeJS.ProcessEnv
}

/** Runs `go` with these arguments; resolves to what it printed. Throws its last words. */
export async function runGo(args: readonly string[], given: GoRun): Promise<string> {
  await checkGo()
  const { cwd, msMax } = given
  // Programs without C, which run on any Linux and in images of nothing else.
  const fixed = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly -buildvcs=false', CGO_ENABLED: '0' }
  const env = { ...process.env, ...fixed, ...given.env }
  const limits = { timeout: msMax, killSignal: 'SIGINT', maxBuffer: OUTPUT_BYTES_MAX } as const
  try {
    const { stdout } = await run('go', args, { cwd, env, ...limits })
    return stdout
  } catch (error) {
    const { killed, stderr } = error as { killed?: boolean; stderr?: string }
    const late = `it timed out after ${msMax / 1000} s; the next run continues the build`
    const why = killed === true ? late : (stderr ?? '').slice(-REASON_CHARACTERS_MAX)
    throw new Error(`go ${args[0] ?? ''} in ${cwd}: ${why}`, { cause: error })
  }
}

async function checkGo(): Promise<void> {
  const needed = `Go 1.${GO_MINOR_MIN} or newer is needed on PATH (https://go.dev/dl)`
  const options = { timeout: PROBE_MS_MAX, env: { ...process.env, GOTOOLCHAIN: 'local' } }
  const { stdout } = await run('go', ['env', 'GOVERSION'], options).catch((error: unknown) => {
    throw new Error(`${needed}: it cannot be run`, { cause: error })
  })
  const minor = Number(/^go1\.(\d+)/.exec(stdout)?.[1])
  if (!(minor >= GO_MINOR_MIN)) throw new Error(`${needed}: this one is ${stdout.trim()}`)
}
