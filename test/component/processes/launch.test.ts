// The launcher in checkouts with few packages: one installation at a time, and its faults.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  addLinkedNode,
  announcedSize,
  megabytesOf,
  SIZE_TOLERANCE,
} from '../../kit/processes/installation.ts'
import { waitFor } from '../../kit/wait-for.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))
const TEST_MS_MAX = 600_000
const YAML = 'node_modules/yaml'
const NODE = `node_modules/node-${process.platform}-${process.arch}`

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-launch-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true })
})

/** Creates a checkout with the launcher, which needs only the package yaml, or also Node.js. */
async function createCheckout(name: string, needs: 'yaml' | 'yaml and Node.js'): Promise<string> {
  const checkout = join(folder, name)
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string }>
  }
  const dependencies = { yaml: packages[YAML]?.version }
  const node = { [NODE.replace('node_modules/', '')]: packages[NODE]?.version }
  const optional = needs === 'yaml' ? {} : { optionalDependencies: node }
  const manifest = { name: 'few-packages', version: '1.0.0', dependencies, ...optional }
  const locked = { [YAML]: packages[YAML], ...(needs !== 'yaml' && { [NODE]: packages[NODE] }) }
  const lock = { ...manifest, lockfileVersion: 3, packages: { '': manifest, ...locked } }
  await mkdir(join(checkout, 'src'), { recursive: true })
  for (const file of ['src/launch.js', 'src/run-npm.js'])
    await cp(join(root, file), join(checkout, file))
  await writeFile(join(checkout, 'package.json'), JSON.stringify({ ...manifest, type: 'module' }))
  await writeFile(join(checkout, 'package-lock.json'), JSON.stringify(lock))
  return checkout
}

/** Installs a program `npm` that runs `script` before the real one; returns the PATH. */
async function createNpm(name: string, script: string): Promise<string> {
  const path = process.env['PATH'] ?? ''
  await mkdir(join(folder, name))
  const real = (await run('sh', ['-c', 'command -v npm'])).stdout.trim()
  const lines = ['#!/bin/sh', script, `exec '${real}' "$@"`, '']
  await writeFile(join(folder, name, 'npm'), lines.join('\n'), { mode: 0o755 })
  return `${join(folder, name)}${delimiter}${path}`
}

test(
  'processes that start at the same time install the packages once',
  async () => {
    const checkout = await createCheckout('concurrent', 'yaml')
    const launch = (...args: string[]) =>
      run(process.execPath, ['src/launch.js', ...args], { cwd: checkout })
    const launched = await Promise.all([launch(), launch(), launch()])
    expect(launched.map(({ stdout }) => stdout)).toEqual(Array(3).fill(process.execPath))
    const output = launched.map(({ stderr }) => stderr).join('')
    expect(output.match(/installing 1 packages/g)).toHaveLength(1)
    expect(output).toContain('curtail: 1 of 1 packages\n')
    const installed = await megabytesOf(join(root, 'node_modules'))
    expect(Math.abs(installed / announcedSize(output) - 1)).toBeLessThan(SIZE_TOLERANCE)
    await rm(join(checkout, 'node_modules'), { recursive: true })
    await writeFile(join(checkout, '.install-lock'), '999999999') // of a process that was killed
    expect((await launch('--omit=dev')).stderr).toContain('installing 1 packages')
    expect(await readdir(checkout)).not.toContain('.install-lock')

    const types = join(checkout, YAML, 'dist/index.d.ts')
    expect(existsSync(types)).toBe(false) // the program does not load it
    expect((await launch('--omit=dev')).stderr).toBe('')
    expect((await launch()).stderr).toContain('installing 1 packages')
    expect(existsSync(types)).toBe(true) // type checks need it
    expect((await launch('--omit=dev')).stderr).toBe('')

    const record = join(checkout, 'node_modules/.package-lock.json')
    await writeFile(record, (await readFile(record, 'utf8')).slice(0, 40)) // an aborted write
    expect((await launch('--omit=dev')).stderr).toContain('installing 1 packages')
  },
  TEST_MS_MAX,
)

test(
  'a Node.js in node_modules is installed with the packages, also if the cache of npm is old',
  async () => {
    const checkout = await createCheckout('linked', 'yaml and Node.js')
    const PATH = await createNpm('old-cache', 'case "$*" in *--prefer-offline*) exit 1;; esac')
    const launch = (program: string) =>
      run(program, ['src/launch.js', '--omit=dev'], {
        cwd: checkout,
        env: { ...process.env, PATH },
      })
    const installed = join(checkout, NODE, 'bin/node')
    const first = await launch(await addLinkedNode(checkout))
    expect(first.stdout).toBe(installed)
    expect(first.stderr).toMatch(/installing 1 packages and Node\.js [\d.]+, about/)
    expect((await launch(installed)).stderr).toBe('')

    await writeFile(join(checkout, NODE, 'package.json'), '{"version":') // an aborted write
    const repaired = await launch(installed)
    expect(repaired.stderr).toMatch(/installing Node\.js [\d.]+, about \d+ MB, once\n$/)
    await rm(join(checkout, 'node_modules/.package-lock.json'))
    const updated = await launch(installed) // `npm ci` deletes the Node.js that runs the launcher
    expect([repaired.stdout, updated.stdout]).toEqual([installed, installed])
    await run(installed, ['--version'])
  },
  TEST_MS_MAX,
)

test(
  'a process that waits prints the lock file and the process that has it',
  async () => {
    const checkout = await createCheckout('waiting', 'yaml')
    const lock = join(checkout, '.install-lock')
    await writeFile(lock, String(process.pid))
    const child: ChildProcess = spawn(process.execPath, ['src/launch.js'], { cwd: checkout })
    const exited = new Promise((resolve) => child.on('exit', resolve))
    let output = ''
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    try {
      await waitFor('the line', () => output.includes('\n'))
      expect(output).toBe(`curtail: waiting for process ${process.pid}, which has locked ${lock}\n`)
      await rm(lock)
      expect(await exited).toBe(0)
    } finally {
      child.kill()
      await exited
    }
  },
  TEST_MS_MAX,
)

test('an npm that a signal stops is reported with the signal', async () => {
  const checkout = await createCheckout('killed', 'yaml')
  const env = { ...process.env, PATH: await createNpm('killed-npm', 'kill -KILL $$') }
  const failed = run(process.execPath, ['src/launch.js'], { cwd: checkout, env })
  const stderr: unknown = expect.stringMatching(/packages: npm ci failed: stopped by SIGKILL\n$/)
  await expect(failed).rejects.toMatchObject({ code: 1, stderr })
  expect(existsSync(join(checkout, '.install-lock'))).toBe(false)
})

test('not even the first start loads the TypeScript compiler, also not in threads', async () => {
  const checkout = join(folder, 'compiled')
  await mkdir(join(checkout, 'src'), { recursive: true })
  await cp(join(root, 'src/compile-cache.js'), join(checkout, 'src/compile-cache.js'))
  const isLoaded = 'const isLoaded: boolean = process.moduleLoadList.join().includes("amaro")\n'
  await writeFile(join(checkout, 'package.json'), '{ "type": "module" }')
  await writeFile(
    join(checkout, 'src/program.ts'),
    'import { Worker } from "node:worker_threads"\n' +
      `${isLoaded}console.log(isLoaded)\n` +
      'new Worker(new URL("./thread.ts", import.meta.url), { execArgv: [] })\n',
  )
  await writeFile(join(checkout, 'src/thread.ts'), `${isLoaded}console.log(isLoaded)\n`)
  const start = async (env = {}) => {
    const args = ['--import', './src/compile-cache.js', 'src/program.ts']
    return (await run(process.execPath, args, { cwd: checkout, env })).stdout
  }
  for (const other of ['first', 'first', 'second']) {
    const env = { NODE_COMPILE_CACHE: join(checkout, other) }
    expect(await start(env)).toBe('false\nfalse\n')
  }
  expect(await start()).toBe('false\nfalse\n')
  await rm(join(checkout, 'node_modules'), { recursive: true })
  await writeFile(join(checkout, 'node_modules'), 'no folder')
  expect(await start()).toBe('true\ntrue\n')
})
