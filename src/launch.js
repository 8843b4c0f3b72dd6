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
const nodePackage = `node_modules/node-${process.platform}-${process.arch}`
const isNewEnough = Number(process.versions.node.split('.')[0]) >= NODE_MAJOR
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
 * it was installed. Optional packages may be absent: most are for other platforms. Node.js itself,
 * which npm skips if its download fails, may be absent only if this one is new enough.
 */
function isInstalled() {
  const record = 'node_modules/.package-lock.json'
  if (!existsSync(join(root, record))) return false
  const [installed, locked] = [packagesOf(record), packagesOf('package-lock.json')]
  if (nodePackage in locked && !isNewEnough && !existsSync(join(root, nodePackage))) return false
  return Object.entries(locked).every(
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
  const isLate = error !== undefined && 'code' in error && error.code === 'ETIMEDOUT'
  const cause = isLate ? `not done within ${INSTALL_MINUTES_MAX} minutes` : error?.message
  refuse(`Cannot install packages: npm ci failed: ${cause ?? 'its output is above'}`)
}

/** The Node.js that npm installed; else this one, if it is new enough. @returns {string} */
function nodePath() {
  const installed = join(root, nodePackage, 'bin', 'node')
  if (existsSync(installed)) return installed
  if (isNewEnough) return process.execPath
  const cause =
    nodePackage in packagesOf('package-lock.json')
      ? `npm did not install ${nodePackage}: check its network and its setting 'omit'`
      : `npm has no package of a newer one for ${process.platform}-${process.arch}`
  refuse(
    `Cannot start: this is Node.js ${process.version}, and ${cause}; ` +
      `or install Node.js ${NODE_MAJOR} or newer`,
  )
}

installMissing()
process.stdout.write(nodePath())
