// Prints the path of the Node.js for this project, after installing missing packages;
// `--omit=dev`: only production dependencies. Plain JavaScript, because it must run on the system's
// Node 20. npm scripts call it as `exec "$(node src/launch.js)" …`, so that no extra process runs
// between npm and the program.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR = 24
const INSTALL_MINUTES_MAX = 10
const LOCK_CHECK_MS = 200
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const lock = join(root, '.install-lock')
const nodePackage = `node_modules/node-${process.platform}-${process.arch}`
const isNewEnough = Number(process.versions.node.split('.')[0]) >= NODE_MAJOR
const omitDev = process.argv.includes('--omit=dev')

/**
 * Prints an error and exits with code 1.
 * @param {string} message
 * @returns {never}
 */
function fail(message) {
  process.stderr.write(`curtail: ${message}\n`)
  process.exit(1)
}

/**
 * The packages of a lock file, keyed by folder.
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
 * Whether npm's record of node_modules has every package of package-lock.json, however it was
 * installed. Optional packages may be missing: most are for other platforms. The Node.js package,
 * which npm skips if its download fails, may be missing only if the current Node.js is new enough.
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

/** Creates the lock file of this installation; returns whether no other process has it. */
function acquireLock() {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    fail(`Cannot install packages: ${/** @type {Error} */ (error).message}`)
  }
  process.on('exit', () => {
    rmSync(lock, { force: true })
  })
  return true
}

/** Removes the lock file if its process is killed, or older than an installation may take. */
function removeAbandonedLock() {
  try {
    const isOld = Date.now() - statSync(lock).mtimeMs > INSTALL_MINUTES_MAX * 60_000
    const owner = readFileSync(lock, 'utf8')
    if (isOld || (owner !== '' && !isRunning(Number(owner)))) rmSync(lock, { force: true })
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error // else the other process has finished
  }
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** @param {unknown} error */
function codeOf(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code
}

/** Installs the packages of package-lock.json, unless they are installed; one process at a time. */
function installMissing() {
  if (!existsSync(lock) && isInstalled()) return
  while (!acquireLock()) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_CHECK_MS)
    removeAbandonedLock()
  }
  if (isInstalled()) return
  process.stderr.write('curtail: installing packages, once\n')
  const args = ['ci', '--loglevel=error', ...(omitDev ? ['--omit=dev'] : [])]
  const { status, error } = spawnSync('npm', args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    timeout: INSTALL_MINUTES_MAX * 60_000,
  })
  if (status === 0) return
  const isTimeout = error !== undefined && 'code' in error && error.code === 'ETIMEDOUT'
  const cause = isTimeout ? `not done within ${INSTALL_MINUTES_MAX} minutes` : error?.message
  fail(`Cannot install packages: npm ci failed: ${cause ?? 'its output is above'}`)
}

/** The Node.js that npm installed; else the current one if it is new enough. @returns {string} */
function nodePath() {
  const installed = join(root, nodePackage, 'bin', 'node')
  if (existsSync(installed)) return installed
  if (isNewEnough) return process.execPath
  const cause =
    nodePackage in packagesOf('package-lock.json')
      ? `npm did not install ${nodePackage}: check its network and its setting 'omit'`
      : `npm has no newer Node.js package for ${process.platform}-${process.arch}`
  fail(
    `Cannot start: this is Node.js ${process.version}, and ${cause}; ` +
      `or install Node.js ${NODE_MAJOR} or newer`,
  )
}

installMissing()
process.stdout.write(nodePath())
