// Prints the path of the Node.js that runs this project, after installing what is missing;
// `--omit=dev`: only what the product itself needs. Plain JavaScript, because it must run on the
// machine's own Node 20. npm scripts call it as `exec "$(node src/launch.js)" …`, so that no
// process stands between npm and the program.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR = 24
const INSTALL_MINUTES_MAX = 10
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const omitDev = process.argv.includes('--omit=dev')

/**
 * Reports why nothing can be started, and exits with code 1.
 * @param {string} sentence
 * @returns {never}
 */
function refuse(sentence) {
  process.stderr.write(`curtail: ${sentence}\n`)
  process.exit(1)
}

/**
 * The packages of a lock file by their folder.
 * @param {string} path
 * @returns {Record<string, {
 *   integrity?: string, optional?: boolean, dev?: boolean, devOptional?: boolean
 * }>}
 */
function packagesOf(path) {
  /** @type {unknown} */
  const lock = JSON.parse(readFileSync(join(root, path), 'utf8'))
  return /** @type {{ packages: ReturnType<typeof packagesOf> }} */ (lock).packages
}

/**
 * Whether npm's own record of node_modules has every package that package-lock.json names, however
 * it was installed. Optional packages may be absent: most are for other platforms.
 */
function isInstalled() {
  const record = 'node_modules/.package-lock.json'
  if (!existsSync(join(root, record))) return false
  const installed = packagesOf(record)
  return Object.entries(packagesOf('package-lock.json')).every(
    ([folder, { integrity, optional, dev, devOptional }]) =>
      folder === '' ||
      optional === true ||
      (omitDev && (dev === true || devOptional === true)) ||
      installed[folder]?.integrity === integrity,
  )
}

/** Installs exactly what package-lock.json names, unless that is installed already. */
function installMissing() {
  if (isInstalled()) return
  process.stderr.write('curtail: installing packages, once\n')
  const args = ['ci', '--loglevel=error', ...(omitDev ? ['--omit=dev'] : [])]
  const { status, error } = spawnSync('npm', args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    timeout: INSTALL_MINUTES_MAX * 60_000,
  })
  if (status === 0) return
  const reason = error === undefined ? 'its output is above' : error.message
  refuse(`Cannot install packages: npm ci failed within ${INSTALL_MINUTES_MAX} minutes; ${reason}`)
}

/** The Node.js that npm installed; else this one, if it is new enough. @returns {string} */
function nodePath() {
  const installed = join(
    root,
    `node_modules/node-${process.platform}-${process.arch}`,
    'bin',
    'node',
  )
  if (existsSync(installed)) return installed
  if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR) return process.execPath
  refuse(
    `Cannot start: this is Node.js ${process.version}, and npm has no package of a newer one for ` +
      `${process.platform}-${process.arch}; install Node.js ${NODE_MAJOR} or newer`,
  )
}

installMissing()
process.stdout.write(nodePath())
