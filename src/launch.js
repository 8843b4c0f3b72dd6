// Prints the path of the Node.js that runs this project, after installing what is missing.
// Plain JavaScript, because it must run on the machine's own Node 20. npm scripts call it as
// `exec "$(node src/launch.js)" …`, so that no process stands between npm and the program.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR = 24
const INSTALL_MS_MAX = 10 * 60_000
const root = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * Says why nothing can be started, and ends with exit code 1.
 * @param {string} sentence
 * @returns {never}
 */
function refuse(sentence) {
  process.stderr.write(`curtail: ${sentence}\n`)
  process.exit(1)
}

/** Installs exactly what package-lock.json names, unless that has been done. */
function installMissing() {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
  const stamp = join(root, 'node_modules', '.curtail-installed')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return
  process.stderr.write('curtail: installing packages, once\n')
  const done = spawnSync('npm', ['ci', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    timeout: INSTALL_MS_MAX,
  })
  if (done.status !== 0) refuse('npm ci failed; its own words are above')
  writeFileSync(stamp, lock)
}

/** The Node.js that npm brought; else this one, where it is new enough. @returns {string} */
function nodePath() {
  const brought = join(root, `node_modules/node-${process.platform}-${process.arch}`, 'bin', 'node')
  if (existsSync(brought)) return brought
  if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR) return process.execPath
  refuse(
    `Node.js ${String(NODE_MAJOR)} or newer is needed, and npm has no package of it for ` +
      `${process.platform}-${process.arch}: install it and try again (this is ${process.version})`,
  )
}

installMissing()
process.stdout.write(nodePath())
