// The dependency `k6`, the load generator: Go builds it once from its module, pinned by
// loadtest/k6/go.sum. Runs a scenario of loadtest/ against this machine.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'

const run = promisify(execFile)

/** The version of k6, which the chart contains too. */
export const K6_VERSION = '2.2.0'
const BUILD_MS_MAX = 900_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
const loadtest = fileURLToPath(new URL('../../loadtest', import.meta.url))

/** The path of k6. Throws the reason if the build fails. */
export async function findK6(): Promise<string> {
  const folder = await cachedDependency(`k6-${K6_VERSION}`, async (into) => {
    const args = ['-trimpath', '-ldflags=-s -w', '-o', join(into, 'k6')]
    const module = join(loadtest, 'k6')
    await runGo(['build', ...args, 'go.k6.io/k6/v2'], { cwd: module, msMax: BUILD_MS_MAX })
  })
  return join(folder, 'k6')
}

/** The result of a run of k6. */
export interface K6Run {
  /** 0; 99 if a threshold was crossed; another code if the run failed. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** NAME.json, if the run completed. */
  readonly json: string | undefined
  /** NAME.xml, if the run completed. */
  readonly junit: string | undefined
}

/** Runs `loadtest/NAME.ts` with this environment, for at most `msMax`. */
export async function runK6(
  name: string,
  given: {
    readonly env: Readonly<Record<string, string>>
    readonly msMax: number
    /** @default 15, a low priority */
    readonly niceness?: number
  },
): Promise<K6Run> {
  const { env, ...limits } = given
  const folder = await mkdtemp(join(tmpdir(), 'curtail-k6-'))
  try {
    const settings = Object.entries({ ...env, OUT_FOLDER: folder })
    const pairs = settings.flatMap(([key, value]) => ['-e', `${key}=${value}`])
    const flags = ['--no-usage-report', '--quiet', '--no-color', ...pairs]
    const result = await runProgram(['run', ...flags, join(loadtest, `${name}.ts`)], {
      env: {},
      ...limits,
    })
    const fileOf = (extension: string) =>
      readFile(join(folder, `${name}.${extension}`), 'utf8').catch(() => undefined)
    return { ...result, json: await fileOf('json'), junit: await fileOf('xml') }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the command of a Job's container, with its scripts and its environment. */
export async function runK6Job(given: {
  readonly command: readonly string[]
  readonly scripts: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  readonly msMax: number
}): Promise<Omit<K6Run, 'json' | 'junit'>> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-k6-job-'))
  try {
    for (const [file, script] of Object.entries(given.scripts)) {
      await writeFile(join(folder, file), script)
    }
    const [program, ...args] = given.command
    if (program !== '/usr/bin/k6')
      throw new Error(`the image has /usr/bin/k6, not ${program ?? ''}`)
    const localArgs = args.map((arg) => arg.replace(/^\/scripts(?=\/)/, folder))
    const env = { ...given.env, OUT_FOLDER: folder }
    return await runProgram(localArgs, { env, msMax: given.msMax })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function runProgram(
  args: readonly string[],
  given: { env: Readonly<Record<string, string>>; msMax: number; niceness?: number },
): Promise<Omit<K6Run, 'json' | 'junit'>> {
  const { env, msMax, niceness = 15 } = given
  const limits = { timeout: msMax, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAX } as const
  const all = { ...process.env, K6_AUTO_EXTENSION_RESOLUTION: 'false', ...env }
  return run('nice', ['-n', String(niceness), await findK6(), ...args], {
    ...limits,
    env: all,
  }).then(
    (output) => ({ code: 0, ...output }),
    (error: unknown) => {
      const { code, stdout = '', stderr = '' } = error as Partial<Omit<K6Run, 'json'>>
      return { code: typeof code === 'number' ? code : -1, stdout, stderr }
    },
  )
}
