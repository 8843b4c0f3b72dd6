// Prints the path of the Node.js for this project, after installing missing packages;
// `--omit=dev`: only what the program loads. Plain JavaScript, because it must run on the system's
// Node 20. npm scripts call it as `exec "$(node src/launch.js)" …`, so that no extra process runs
// between npm and the program.
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname, extname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { INSTALL_MINUTES_MAX, run, runNpm } from './run-npm.js'

const { existsSync, readFileSync, rmSync } = fs

const NODE_MAJOR = 24
const LOCK_CHECK_MS = 200
const LOCK_REPORT_MS = 5000
const PROGRESS_MS = 2000
/** Files that Node.js never loads from node_modules: TypeScript, and source maps. */
const UNLOADED = new Set(['.ts', '.mts', '.cts', '.map'])
/** What an installation takes on disk, in MB; a test compares it with the installed files. */
const INSTALLED_MB = { packages: 75, node: 120, all: 580 }
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const lock = join(root, '.install-lock')
const modules = join(root, 'node_modules')
/** The folder of the Node.js package until npm has installed the other packages. */
const unpackedNode = join(root, '.install-node')
/** Marks packages without the files that only developers need. */
const reducedMark = join(modules, '.reduced')
const nodeName = `node-${process.platform}-${process.arch}`
const nodePackage = `node_modules/${nodeName}`
const installedNode = join(root, nodePackage, 'bin', 'node')
/** `npm ci` deletes node_modules, and with it the Node.js that may be running this file. */
const isInModules =
  existsSync(modules) &&
  fs.realpathSync(process.execPath).startsWith(fs.realpathSync(modules) + sep)
const isNewEnough = Number(process.versions.node.split('.')[0]) >= NODE_MAJOR && !isInModules
const omitDev = process.argv.includes('--omit=dev')

/**
 * Prints an error, and exits with code 1.
 * @param {string} message
 * @returns {never}
 */
function fail(message) {
  print(message)
  process.exit(1)
}

/** @param {string} line */
function print(line) {
  process.stderr.write(`curtail: ${line}\n`)
}

/**
 * A package of a lock file.
 * @typedef {{
 *   version?: string, integrity?: string, os?: string[], cpu?: string[],
 *   optional?: boolean, dev?: boolean, devOptional?: boolean
 * }} Package
 */

/**
 * A lock file; its packages are keyed by folder.
 * @typedef {{ packages: Record<string, Package> }} Lock
 */

/** @param {string} path @returns {unknown} */
function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}

/**
 * Reads a file of node_modules; `undefined` if it is missing, or truncated by an aborted
 * installation.
 * @param {string} path
 * @returns {Partial<Lock & Package> | undefined}
 */
function readInstalled(path) {
  try {
    return /** @type {Partial<Lock & Package>} */ (readJson(path))
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}

const locked = /** @type {Lock} */ (readJson('package-lock.json')).packages
const nodeVersion = locked[nodePackage]?.version
/** Whether the program runs on a Node.js that npm installs. */
const usesInstalledNode = !isNewEnough && nodeVersion !== undefined

/** Whether the Node.js package is installed, in the version of package-lock.json. */
function hasNode() {
  const manifest = readInstalled(`${nodePackage}/package.json`)
  return manifest?.version === nodeVersion && existsSync(installedNode)
}

/** @param {Package} given */
const isOmitted = ({ dev, devOptional }) => omitDev && (dev === true || devOptional === true)

/**
 * Whether npm's record of node_modules has every package of package-lock.json, however it was
 * installed. Optional packages may be missing: most are for other platforms.
 */
function hasPackages() {
  if (!omitDev && existsSync(reducedMark)) return false
  const record = readInstalled('node_modules/.package-lock.json')
  const installed = record?.packages
  if (installed === undefined) return false
  return Object.entries(locked).every(
    ([folder, given]) =>
      folder === '' ||
      given.optional === true ||
      isOmitted(given) ||
      installed[folder]?.integrity === given.integrity,
  )
}

const isInstalled = () => hasPackages() && (!usesInstalledNode || hasNode())

/** Creates the lock file of this installation; returns false if another process has it. */
function acquireLock() {
  try {
    const file = fs.openSync(lock, 'wx')
    process.on('exit', () => {
      rmSync(unpackedNode, { recursive: true, force: true })
      rmSync(lock, { force: true })
    })
    fs.writeFileSync(file, String(process.pid))
    fs.closeSync(file)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    fail(`Cannot install packages: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * Removes the lock file if its process no longer runs, or if it is older than two attempts take.
 * @param {boolean} isReported whether to print which process has it
 */
function removeAbandonedLock(isReported) {
  try {
    const isOld = Date.now() - fs.statSync(lock).mtimeMs > 2 * INSTALL_MINUTES_MAX * 60_000
    const owner = readFileSync(lock, 'utf8')
    if (isReported) print(`waiting for process ${owner || 'unknown'}, which has locked ${lock}`)
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

/** Installs what is missing, if anything is; one process at a time. */
async function installMissing() {
  if (!existsSync(lock) && isInstalled()) return
  for (let waits = 1; !acquireLock(); waits++) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_CHECK_MS)
    removeAbandonedLock(waits === LOCK_REPORT_MS / LOCK_CHECK_MS)
  }
  const needsPackages = !hasPackages()
  const needsNode = usesInstalledNode && (needsPackages || !hasNode())
  if (needsPackages || needsNode) await (omitDev ? installReduced(needsPackages, needsNode) : all())
}

/** Installs every package, including Node.js and those for development. */
const all = () => installPackages('', INSTALLED_MB.all)

/**
 * Installs only what the program loads.
 * @param {boolean} needsPackages
 * @param {boolean} needsNode
 */
async function installReduced(needsPackages, needsNode) {
  const node = `Node.js ${nodeVersion}`
  const mb = (needsPackages ? INSTALLED_MB.packages : 0) + (needsNode ? INSTALLED_MB.node : 0)
  const unpacked = needsNode && unpackNode()
  if (needsPackages) await installPackages(needsNode ? ` and ${node}` : '', mb)
  else print(`installing ${node}, about ${mb} MB, once`)
  await unpacked
  if (needsPackages) removeUnloadedFiles()
  if (!needsNode) return
  rmSync(join(root, nodePackage), { recursive: true, force: true })
  fs.renameSync(join(unpackedNode, 'package'), join(root, nodePackage))
}

/**
 * Runs `npm ci`, and prints its progress. Production packages need no scripts, and no optional
 * packages but Node.js.
 * @param {string} about what is installed in addition
 * @param {number} mb
 */
async function installPackages(about, mb) {
  const folders = Object.entries(locked)
    .filter(([folder, given]) => folder !== '' && !isOmitted(given) && isForThisPlatform(given))
    .map(([folder]) => folder)
  print(`installing ${folders.length} packages${about}, about ${mb} MB, once`)
  let printed = 0
  const printProgress = () => {
    const done = folders.filter((folder) => existsSync(join(root, folder, 'package.json'))).length
    if (done > printed) print(`${done} of ${folders.length} packages`)
    printed = done
  }
  const progress = setInterval(printProgress, PROGRESS_MS)
  const args = ['ci', '--no-progress']
  if (omitDev) args.push('--omit=dev', '--omit=optional', '--ignore-scripts')
  try {
    await runNpm(args, root)
    printProgress()
  } catch (error) {
    fail(`Cannot install packages: ${/** @type {Error} */ (error).message}`)
  } finally {
    clearInterval(progress)
  }
}

/** @param {Package} given */
function isForThisPlatform({ os, cpu, optional }) {
  if (omitDev && optional === true) return false
  return (os?.includes(process.platform) ?? true) && (cpu?.includes(process.arch) ?? true)
}

/**
 * Downloads the Node.js package with npm, and unpacks the program without headers, which are a
 * third of the package. Runs at the same time as `npm ci`.
 */
async function unpackNode() {
  const archive = join(unpackedNode, `${nodeName}-${nodeVersion}.tgz`)
  const args = ['pack', `${nodeName}@${nodeVersion}`, '--ignore-scripts']
  try {
    rmSync(unpackedNode, { recursive: true, force: true })
    fs.mkdirSync(unpackedNode)
    await runNpm([...args, '--pack-destination', unpackedNode], root)
    const digest = createHash('sha512').update(readFileSync(archive)).digest('base64')
    const { integrity } = locked[nodePackage] ?? {}
    if (integrity !== `sha512-${digest}`) throw new Error(`${archive} must be ${integrity}`)
    const excluded = ['--exclude=package/include', '--exclude=package/share']
    await run('tar', ['-xzf', archive, '-C', unpackedNode, ...excluded], root)
    if (!existsSync(join(unpackedNode, 'package/bin/node')))
      throw new Error(`${archive} must contain package/bin/node`)
  } catch (error) {
    const cause = /** @type {Error} */ (error).message
    fail(`Cannot install ${nodeName}: ${cause}; or install Node.js ${NODE_MAJOR} or newer`)
  }
}

/** Removes the types and source maps of packages: Node.js never loads them. */
function removeUnloadedFiles() {
  fs.writeFileSync(reducedMark, '')
  for (const name of fs.readdirSync(modules, { recursive: true, encoding: 'utf8' })) {
    const path = join(modules, name)
    if (UNLOADED.has(extname(name)) && fs.lstatSync(path).isFile()) fs.unlinkSync(path)
  }
}

/** The Node.js that npm installed; else the current one if it is new enough. @returns {string} */
function nodePath() {
  if (existsSync(installedNode)) return installedNode
  if (isNewEnough) return process.execPath
  const cause =
    nodeVersion === undefined
      ? `npm has no newer Node.js package for ${process.platform}-${process.arch}`
      : `npm did not install ${nodePackage}: check its network and its setting 'omit'`
  fail(
    `Cannot start: this is Node.js ${process.version}, and ${cause}; ` +
      `or install Node.js ${NODE_MAJOR} or newer`,
  )
}

await installMissing()
process.stdout.write(nodePath())
