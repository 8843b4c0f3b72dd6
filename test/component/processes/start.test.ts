// The first start by a new user, on a copy of the checkout without packages: `npm start` installs
// what the program loads, also Node.js, and prints its address and two commands, which a shell runs
// as printed; Ctrl-C stops all of its processes.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findCurl } from '../../dependencies/curl.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import {
  addLinkedNode,
  announcedSize,
  megabytesOf,
  SIZE_TOLERANCE,
} from '../../kit/processes/installation.ts'
import { inherited, roleArguments } from '../../kit/processes/role-process.ts'
import { waitFor } from '../../kit/wait-for.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))
const TEST_MS_MAX = 180_000
const INSTALL_MS_MAX = 600_000
/** The size of `node_modules` after the first start, on disk. */
const INSTALLED_MB_MAX = 200

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-start-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true })
})

/** Copies the checkout, as a clone has it. */
async function copyCheckout(to: string): Promise<void> {
  const tracked = (await run('git', ['ls-files'], { cwd: root })).stdout.trim().split('\n')
  const top = new Set(tracked.map((path) => path.split('/')[0] ?? ''))
  for (const name of top) await cp(join(root, name), join(to, name), { recursive: true })
}

/** Collects the output of a process. */
function outputOf(child: ChildProcess): { text: string } {
  const output = { text: '' }
  const collect = (chunk: Buffer) => (output.text += chunk.toString())
  child.stdout?.on('data', collect)
  child.stderr?.on('data', collect)
  return output
}

/** Ids of the processes of a group that still run. */
async function groupOf(leader: number): Promise<number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (/^\d+$/.test(name) && Number(group) === leader && state !== 'Z') found.push(Number(name))
  }
  return found
}

/** Runs `npm start` until it serves; `use` receives its output. Ctrl-C must then stop it. */
async function withStarted(
  checkout: string,
  use: (output: string) => Promise<void>,
): Promise<{ readonly output: string }> {
  const env = { ...process.env, PORT: '0', ADMIN_PORT: '0', DATA_DIR: join(folder, 'start') }
  // A process group of its own, as in a terminal: Ctrl-C reaches npm and all of its children.
  const child = spawn('npm', ['start'], { cwd: checkout, env, detached: true })
  const leader = child.pid ?? 0
  const output = outputOf(child)
  const closed = new Promise((resolve) => child.on('close', resolve))
  try {
    const isGreeted = () => output.text.includes('Ctrl-C stops it.') || child.exitCode !== null
    await waitFor('the greeting', isGreeted, INSTALL_MS_MAX)
    await use(output.text)
    process.kill(-leader, 'SIGINT')
    await waitFor('all of its processes to exit', async () => (await groupOf(leader)).length === 0)
    await closed // the output is complete
    return { output: output.text }
  } finally {
    for (const pid of await groupOf(leader)) process.kill(pid, 'SIGKILL')
  }
}

/** Runs the two commands of the greeting, as printed. */
async function tryGreeting(output: string): Promise<void> {
  const base = /Curtail listens on (http:\/\/localhost:\d+)\./.exec(output)?.[1] ?? ''
  const commands = output.split('\n').filter((line) => line.startsWith('  curl '))
  expect(commands).toHaveLength(2)
  const [create = '', resolve = ''] = commands
  const { stdout } = await run('sh', ['-c', create])
  const shortUrl = String((JSON.parse(stdout) as Record<string, unknown>)['short_url'])
  expect(resolve).toContain(shortUrl)
  expect(shortUrl.startsWith(`${base}/`)).toBe(true)
  const redirect = (await run('sh', ['-c', resolve])).stdout
  expect(redirect).toMatch(/^HTTP\/1\.1 302 /)
  expect(redirect).toMatch(/^location: https:\/\/example\.com\/\r$/im)
}

test(
  'npm start installs what the program loads, and prints two commands to try; Ctrl-C stops it',
  async () => {
    await findCurl()
    const checkout = join(folder, 'checkout')
    await copyCheckout(checkout)
    await addLinkedNode(checkout)
    const modules = join(checkout, 'node_modules')
    const node = join(modules, `node-${process.platform}-${process.arch}`)

    const first = await withStarted(checkout, tryGreeting)
    const [, count] = /installing (\d+) packages and Node\.js [\d.]+, /.exec(first.output) ?? []
    expect(first.output).toContain(`curtail: ${count} of ${count} packages\n`)
    expect(first.output).toContain('"msg":"stopped"')
    expect(first.output).not.toMatch(/"level":"(warn|error|fatal)"/)
    expect(first.output).not.toMatch(/npm (ERR|error)/i)
    const [installed, announced] = [await megabytesOf(modules), announcedSize(first.output)]
    expect(installed).toBeLessThanOrEqual(INSTALLED_MB_MAX)
    expect(Math.abs(installed / announced - 1)).toBeLessThan(SIZE_TOLERANCE)
    const withoutNode = installed - (await megabytesOf(node))
    const documented = /\(about (\d+) MB, or (\d+) MB if you have\s+Node\.js/.exec(
      await readFile(join(root, 'README.md'), 'utf8'),
    )
    expect(Number(documented?.[1])).toBe(announced)
    expect(Math.abs(withoutNode / Number(documented?.[2]) - 1)).toBeLessThan(SIZE_TOLERANCE)
    expect((await readdir(node)).sort()).toEqual(expect.arrayContaining(['LICENSE', 'bin']))
    expect(existsSync(join(node, 'include'))).toBe(false)
    const packages = await readdir(modules)
    expect(packages).toEqual(expect.arrayContaining(['express', 'ioredis', 'zod']))
    for (const name of ['jest', 'typescript', 'eslint']) expect(packages).not.toContain(name)

    const second = await withStarted(checkout, tryGreeting)
    expect(second.output).not.toContain('curtail: ')
  },
  2 * TEST_MS_MAX + INSTALL_MS_MAX,
)

test(
  'the greeting contains the address, BASE_URL if that differs, and an API key if it is required',
  async () => {
    await findCurl()
    const keys = join(folder, 'keys')
    const created = await runCurtail(['key', 'create', 'try'], { API_KEYS: keys })
    const key = created.stdout.trim()
    for (const baseUrl of ['https://cur.tl', undefined]) {
      const env = { PORT: '0', ADMIN_PORT: '0', DATA_DIR: join(folder, `greet-${baseUrl?.length}`) }
      const isKeyRequired = baseUrl === undefined
      const child = spawn(process.execPath, roleArguments('standalone', '--greet'), {
        cwd: root,
        env: {
          ...inherited,
          ...env,
          ...(isKeyRequired ? { API_KEYS: keys, API_KEY_REQUIRED: 'true' } : { BASE_URL: baseUrl }),
        },
      })
      const exited = new Promise((resolve) => child.on('exit', resolve))
      const output = outputOf(child)
      try {
        await waitFor('the greeting', () => output.text.includes('Ctrl-C stops it.'))
        const port = /"port":(\d+)/.exec(output.text)?.[1] ?? 'none'
        const here = `http://localhost:${port}`
        expect(output.text).toContain(`Curtail listens on ${here}. `)
        const [create = '', resolve = ''] = output.text.match(/^ {2}curl .*$/gm) ?? []
        expect(create.includes("-H 'X-API-Key: KEY'")).toBe(isKeyRequired)
        const withKey = create.replace('X-API-Key: KEY', `X-API-Key: ${key}`)
        expect(JSON.parse((await run('sh', ['-c', withKey])).stdout)).toHaveProperty('short_url')
        expect((await run('sh', ['-c', resolve])).stdout).toMatch(/^HTTP\/1\.1 302 /)
        const named = /^Short links start with (.*)\.$/m.exec(output.text)?.[1]
        expect(named).toBe(baseUrl)
      } finally {
        child.kill('SIGTERM')
        await exited
      }
    }
  },
  TEST_MS_MAX,
)

test(
  'npm run -s curtail -- passes its arguments on and returns the exit code',
  async () => {
    const help = await run('npm', ['run', '-s', 'curtail', '--', 'pool', '--help'], { cwd: root })
    expect(help.stdout).toMatch(/^Usage: curtail pool status/)
    const failed = run('npm', ['run', '-s', 'curtail', '--', 'link', 'burn', 'x'], { cwd: root })
    await expect(failed).rejects.toMatchObject({ code: 2, stdout: '' })
  },
  TEST_MS_MAX,
)

test('a failed start prints one line, without output of npm', async () => {
  const run = await runCurtail(['standalone'], { PORT: 'x', DATA_DIR: join(folder, 'unused') })
  expect(run.stderr).toMatch(/^curtail: PORT must be [^\n]+\n$/)
})
