// The dependency `http2-tools`: h2spec, which tests HTTP/2 servers against the RFCs, and grpcurl, a
// client of gRPC reflection. Go builds both once, pinned by test/dependencies/http2-tools/go.sum.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'

const run = promisify(execFile)

const VERSION = 'h2spec-2.2.1-grpcurl-1.9.4'
const BUILD_MS_MAX = 600_000
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024
const module = fileURLToPath(new URL('http2-tools', import.meta.url))
const programs = {
  h2spec: 'github.com/summerwind/h2spec/cmd/h2spec',
  grpcurl: 'github.com/fullstorydev/grpcurl/cmd/grpcurl',
} as const

/** The folder of both programs. Throws the reason if a build fails. */
export function findHttp2Tools(): Promise<string> {
  return cachedDependency(`http2-tools-${VERSION}`, async (into) => {
    for (const [name, program] of Object.entries(programs)) {
      const args = ['-trimpath', '-ldflags=-s -w', '-o', join(into, name), program]
      await runGo(['build', ...args], { cwd: module, msMax: BUILD_MS_MAX })
    }
  })
}

/** The exit code and the output of a run. */
export interface ToolRun {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs one of the programs, for at most `msMax`. */
export async function runHttp2Tool(
  name: keyof typeof programs,
  args: readonly string[],
  msMax: number,
): Promise<ToolRun> {
  const limits = { timeout: msMax, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAX } as const
  return run(join(await findHttp2Tools(), name), args, limits).then(
    (output) => ({ code: 0, ...output }),
    (error: unknown) => {
      const { code, stdout = '', stderr = String(error) } = error as Partial<ToolRun>
      return { code: typeof code === 'number' ? code : -1, stdout, stderr }
    },
  )
}
