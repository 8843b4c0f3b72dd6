// The first start by a new user, with production packages only: `npm start` prints its address and
// two commands, which a shell runs as printed; Ctrl-C stops all of its processes.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findCurl } from '../../dependencies/curl.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { roleArguments } from '../../kit/processes/role-process.ts'
import { waitFor } from '../../kit/wait-for.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))
const TEST_MS_MAX = 60_000
const INSTALL_MS_MAX = 600_000

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-start-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true })
})

/** A copy of the checkout with the packages that `npm ci --omit=dev` installs. */
async function copyWithoutDevPackages(to: string): Promise<void> {
  const tracked = (await run('git', ['ls-files'], { cwd: root })).stdout.trim().split('\n')
  const top = new Set(tracked.map((path) => path.split('/')[0] ?? ''))
  for (const name of top) await cp(join(root, name), join(to, name), { recursive: true })
  const install = ['ci', '--omit=dev', '--loglevel=error']
  await run('npm', install, { cwd: to, timeout: INSTALL_MS_MAX })
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

test(
  'npm start prints two commands that create a link and resolve it; Ctrl-C stops it',
  async () => {
    await findCurl()
    const checkout = join(folder, 'checkout')
    await copyWithoutDevPackages(checkout)
    const env = { ...process.env, PORT: '0', ADMIN_PORT: '0', DATA_DIR: join(folder, 'start') }
    // A process group of its own, as in a terminal: Ctrl-C reaches npm and all of its children.
    const child = spawn('npm', ['start'], { cwd: checkout, env, detached: true })
    const leader = child.pid ?? 0
    const output = outputOf(child)
    const exited = new Promise((resolve) => child.on('exit', resolve))
    try {
      await waitFor('the greeting', () => output.text.includes('Ctrl-C stops it.'))
      const base = /Curtail listens on (http:\/\/localhost:\d+)\./.exec(output.text)?.[1] ?? ''
      const commands = output.text.split('\n').filter((line) => line.startsWith('  curl '))
      expect(commands).toHaveLength(2)
      const [create = '', resolve = ''] = commands
      const { stdout } = await run('sh', ['-c', create])
      const shortUrl = String((JSON.parse(stdout) as Record<string, unknown>)['short_url'])
      expect(resolve).toContain(shortUrl)
      expect(shortUrl.startsWith(`${base}/`)).toBe(true)
      const redirect = (await run('sh', ['-c', resolve])).stdout
      expect(redirect).toMatch(/^HTTP\/1\.1 302 /)
      expect(redirect).toMatch(/^location: https:\/\/example\.com\/\r$/im)

      process.kill(-leader, 'SIGINT')
      await exited
      await waitFor(
        'all of its processes to exit',
        async () => (await groupOf(leader)).length === 0,
      )
      expect(output.text).toContain('"msg":"stopped"')
      expect(output.text).not.toContain('installing packages')
      expect(output.text).not.toMatch(/npm (ERR|error)/i)
    } finally {
      for (const pid of await groupOf(leader)) process.kill(pid, 'SIGKILL')
    }
  },
  TEST_MS_MAX + INSTALL_MS_MAX,
)

test(
  'the greeting contains the address, and BASE_URL only if that differs',
  async () => {
    await findCurl()
    for (const baseUrl of ['https://cur.tl', undefined]) {
      const env = { PORT: '0', ADMIN_PORT: '0', DATA_DIR: join(folder, `greet-${baseUrl?.length}`) }
      const child = spawn(process.execPath, roleArguments('standalone', '--greet'), {
        cwd: root,
        env: {
          PATH: process.env['PATH'],
          ...env,
          ...(baseUrl !== undefined && { BASE_URL: baseUrl }),
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
        expect(JSON.parse((await run('sh', ['-c', create])).stdout)).toHaveProperty('short_url')
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

test(
  'processes that start at the same time install the packages once',
  async () => {
    const checkout = join(folder, 'concurrent')
    const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version: string }>
    }
    const path = 'node_modules/yaml'
    const dependencies = { yaml: packages[path]?.version }
    const manifest = { name: 'few-packages', version: '1.0.0', dependencies }
    const lock = {
      ...manifest,
      lockfileVersion: 3,
      packages: { '': manifest, [path]: packages[path] },
    }
    await mkdir(join(checkout, 'src'), { recursive: true })
    await cp(join(root, 'src/launch.js'), join(checkout, 'src/launch.js'))
    await writeFile(join(checkout, 'package.json'), JSON.stringify({ ...manifest, type: 'module' }))
    await writeFile(join(checkout, 'package-lock.json'), JSON.stringify(lock))
    const launch = () => run(process.execPath, ['src/launch.js'], { cwd: checkout })
    const launched = await Promise.all([launch(), launch(), launch()])
    expect(launched.map(({ stdout }) => stdout)).toEqual(Array(3).fill(process.execPath))
    expect(launched.filter(({ stderr }) => stderr.includes('installing packages'))).toHaveLength(1)
    await rm(join(checkout, 'node_modules'), { recursive: true })
    await writeFile(join(checkout, '.install-lock'), '999999999') // of a process that was killed
    expect((await launch()).stderr).toContain('installing packages')
    expect(await readdir(checkout)).not.toContain('.install-lock')
  },
  TEST_MS_MAX,
)

test('a failed start prints one line, without output of npm', async () => {
  const run = await runCurtail(['standalone'], { PORT: 'x', DATA_DIR: join(folder, 'unused') })
  expect(run.stderr).toMatch(/^curtail: PORT must be [^\n]+\n$/)
})
