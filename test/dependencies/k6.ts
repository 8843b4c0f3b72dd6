// The dependency `k6`, which offers load: built once by Go from its module, pinned by
// loadtest/k6/go.sum. Runs a scenario of loadtest/; sends nothing outside this machine.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'

const run = promisify(execFile)

/** Its version, which the chart names too. */
export const K6_VERSION = '2.2.0'
const BUILD_MS_MAX = 900_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
const loadtest = fileURLToPath(new URL('../../loadtest', import.meta.url))

/** Its path. Throws the reason where it cannot be built. */
export async function findK6(): Promise<string> {
  const folder = await cachedDependency(`k6-${K6_VERSION}`, async (into) => {
    const what = ['-trimpath', '-ldflags=-s -w', '-o', join(into, 'k6')]
    const module = join(loadtest, 'k6')
    await runGo(['build', ...what, 'go.k6.io/k6/v2'], { cwd: module, msMax: BUILD_MS_MAX })
  })
  return join(folder, 'k6')
}

/** How a run of k6 ended. */
export interface K6Run {
  /** 0; 99 where a threshold was not kept; others where the run itself failed. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** NAME.json and NAME.xml, where the run came to its end. */
  readonly json: string | undefined
  readonly junit: string | undefined
}

/** Runs `loadtest/NAME.ts` with this environment, for at most `msMax`, at low priority. */
export async function runK6(
  name: string,
  { env, msMax }: { env: Readonly<Record<string, string>>; msMax: number },
): Promise<K6Run> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-k6-'))
  try {
    const settings = Object.entries({ ...env, OUT_FOLDER: folder })
    const pairs = settings.flatMap(([key, value]) => ['-e', `${key}=${value}`])
    const flags = ['--no-usage-report', '--quiet', '--no-color', ...pairs]
    const ended = await runProgram(['run', ...flags, join(loadtest, `${name}.ts`)], {
      env: {},
      msMax,
    })
    const fileOf = (ending: string) =>
      readFile(join(folder, `${name}.${ending}`), 'utf8').catch(() => undefined)
    return { ...ended, json: await fileOf('json'), junit: await fileOf('xml') }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs what a Job's container would: its command, its scripts as it has them, its environment. */
export async function runK6Job(given: {
  readonly command: readonly string[]
  readonly scripts: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  readonly msMax: number
}): Promise<Omit<K6Run, 'json' | 'junit'>> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-k6-job-'))
  try {
    for (const [file, text] of Object.entries(given.scripts)) {
      await writeFile(join(folder, file), text)
    }
    const [program, ...args] = given.command
    if (program !== '/usr/bin/k6')
      throw new Error(`the image has /usr/bin/k6, not ${program ?? ''}`)
    const placed = args.map((arg) => arg.replace(/^\/scripts(?=\/)/, folder))
    const env = { ...given.env, OUT_FOLDER: folder }
    return await runProgram(placed, { env, msMax: given.msMax })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function runProgram(
  args: readonly string[],
  { env, msMax }: { env: Readonly<Record<string, string>>; msMax: number },
): Promise<Omit<K6Run, 'json' | 'junit'>> {
  const limits = { timeout: msMax, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAX } as const
  const all = { ...process.env, K6_AUTO_EXTENSION_RESOLUTION: 'false', ...env }
  return run('nice', ['-n', '15', await findK6(), ...args], { ...limits, env: all }).then(
    (said) => ({ code: 0, ...said }),
    (error: unknown) => {
      const { code, stdout = '', stderr = '' } = error as Partial<Omit<K6Run, 'json'>>
      return { code: typeof code === 'number' ? code : -1, stdout, stderr }
    },
  )
}
