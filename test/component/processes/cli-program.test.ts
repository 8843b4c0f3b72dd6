// `bin/curtail.js`, which npm links as `curtail`: on the Node.js of the project, which it replaces
// itself with, and on Node.js 20, of which the role is a child process.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { version } from '../../../src/process/version.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))
const program = join(root, 'bin', 'curtail.js')
const TEST_MS_MAX = 180_000

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-program-'))
  await symlink(program, join(folder, 'curtail'))
})

afterAll(() => rm(folder, { recursive: true }))

/** Hides process.execve, which Node.js 20 lacks. */
const asOnNode20 = 'data:text/javascript,delete process.execve'

describe.each([
  ['replacing itself', []],
  ['with a child process', ['--import', asOnNode20]],
])('curtail, %s,', (_, options) => {
  const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    spawn(process.execPath, [...options, join(folder, 'curtail'), ...args], {
      cwd: folder,
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })

  test(
    'passes arguments, the working folder, the standard input and the exit code',
    async () => {
      const child = start(['import', '-', '--format=csv'], { ADMIN_URL: 'http://127.0.0.1:1' })
      child.stdin.end('short_code,long_url\na,https://example.com/\n')
      const { output, exit } = await resultOf(child)
      expect(output).toMatch(/curtail: cannot reach the admin API at http:\/\/127\.0\.0\.1:1 /)
      expect(exit).toBe(1)
      const wrong = await resultOf(start(['link', 'shwo', 'a b']))
      expect(wrong).toEqual({ exit: 2, output: expect.stringContaining('"shwo"') as unknown })
      const file = await resultOf(start(['ratelimit-check', 'here.yaml']))
      expect(file).toEqual({ exit: 1, output: 'curtail: here.yaml cannot be read: no such file\n' })
    },
    TEST_MS_MAX,
  )

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'passes %s: the role stops gracefully',
    async (signal) => {
      const env = {
        PORT: '0',
        ADMIN_PORT: '0',
        DATA_DIR: join(folder, `${signal}-${options.length}`),
      }
      const child = start(['standalone'], env)
      let output = ''
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
      await waitFor('standalone to be ready', () => output.includes('"msg":"ready"'))
      child.kill(signal)
      expect((await resultOf(child)).exit).toBe(0)
      expect(output).toContain('"msg":"stopped"')
    },
    TEST_MS_MAX,
  )
})

async function resultOf(child: ChildProcess): Promise<{ exit: unknown; output: string }> {
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const closed = new Promise((resolve) => {
    child.on('close', (code, signal) => {
      resolve(code ?? signal)
    })
  })
  return { exit: await withinDeadline('the exit of curtail', closed), output }
}

test(
  'npx runs it in the checkout, and has the flags of the npm script',
  async () => {
    const { stdout } = await run('npx', ['--offline', 'curtail', '--version'], {
      cwd: root,
      timeout: TEST_MS_MAX,
    })
    expect(stdout).toBe(`curtail ${version} (Node.js ${process.version})\n`)
    const probe = 'data:text/javascript,console.error(JSON.stringify(process.execArgv))'
    const env = { ...process.env, NODE_OPTIONS: `--import=${probe}` }
    const { stderr } = await run(program, ['--version'], { env, timeout: TEST_MS_MAX })
    const started = stderr.trim().split('\n').at(-1) ?? ''
    expect(JSON.parse(started)).toEqual([
      ...['--max-old-space-size=512', '--max-semi-space-size=16', '--single-threaded-gc'],
      '--disable-warning=ExperimentalWarning',
      ...['--import', join(root, 'src/compile-cache.js')],
      ...['--import', join(root, 'src/telemetry/tracing.ts')],
    ])
  },
  TEST_MS_MAX,
)
