#!/usr/bin/env node
// `curtail`, the program of the checkout: `npx curtail`, or `curtail` after `npm link`. Runs the
// script `curtail` of package.json, from any folder. Plain JavaScript, because it must run on the
// system's Node 20.
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
/** @type {readonly NodeJS.Signals[]} */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']

/**
 * The arguments of Node.js in the npm script, the only place that has them: the words after
 * `exec "$NODE"`. Paths become absolute, because the command keeps its own working directory.
 * @returns {string[]}
 */
function programArguments() {
  /** @type {unknown} */
  const packageFile = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const { scripts } = /** @type {{ scripts: { curtail: string } }} */ (packageFile)
  const [, line] = scripts.curtail.split('exec "$NODE" ')
  if (line === undefined) throw new Error('the script curtail of package.json has another form')
  return line.split(' ').map((word) => (/^(\.\/)?src\//.test(word) ? join(root, word) : word))
}

/** The Node.js of the project; the launcher installs missing packages, and prints its errors. */
function findNode() {
  const launcher = [join(root, 'src/launch.js'), '--omit=dev']
  const { status, stdout, error } = spawnSync(process.execPath, launcher, {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? 1)
  return stdout
}

const node = findNode()
const args = [...programArguments(), ...process.argv.slice(2)]
// Replaces this process, so that signals and the exit code need no help. Node 20 cannot do that.
if (process.execve !== undefined) process.execve(node, [node, ...args], process.env)

const child = spawn(node, args, { stdio: 'inherit' })
for (const signal of SIGNALS) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  process.stderr.write(`curtail: Cannot start ${node}: ${error.message}\n`)
  process.exit(1)
})
child.on('close', (code, signal) => {
  process.exit(code ?? 128 + (signal === null ? 0 : constants.signals[signal]))
})
