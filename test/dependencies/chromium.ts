// The dependency `chromium`, version 120 or newer, for tests of pages: on the machine, or installed
// from the packages of the distribution, as root.
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const MAJOR_MIN = 120
const VERSION_MS_MAX = 30_000
const UPDATE_MS_MAX = 180_000
const INSTALL_MS_MAX = 420_000

/** The flags of the tests: no sandbox, because root runs it, and no background requests. */
export const chromiumArgs = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
] as const

/** The path of a suitable Chromium, which is installed if it is missing. Throws the reason. */
export async function findChromium(): Promise<string> {
  const found = await findUsable()
  if (found.path !== undefined) return found.path
  await install(found.why)
  const installed = await findUsable()
  if (installed.path !== undefined) return installed.path
  throw new Error(`Cannot use the installed Chromium: ${installed.why}`)
}

type Found = { readonly path: string } | { readonly path: undefined; readonly why: string }

async function findUsable(): Promise<Found> {
  const path = process.env['CHROMIUM'] ?? (await onPath('chromium'))
  if (path === undefined) return { path, why: 'chromium is not on PATH' }
  try {
    const { stdout } = await run(path, ['--version', '--no-sandbox'], { timeout: VERSION_MS_MAX })
    const major = Number(/ (\d+)\./.exec(stdout)?.[1])
    if (major >= MAJOR_MIN) return { path }
    return { path: undefined, why: `${path} is older than ${MAJOR_MIN}: ${stdout.trim()}` }
  } catch (error) {
    return { path: undefined, why: `${path} does not start: ${(error as Error).message}` }
  }
}

async function onPath(name: string): Promise<string | undefined> {
  for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(directory, name)
    const exists = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (exists) return path
  }
  return undefined
}

async function install(why: string): Promise<void> {
  const advice = `set CHROMIUM to one of at least version ${MAJOR_MIN}`
  if (process.env['CHROMIUM'] !== undefined) throw new Error(`${why}: ${advice}`)
  if (process.getuid?.() !== 0) throw new Error(`${why}, and only root can install it: ${advice}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  try {
    await run('apt-get', ['update'], { timeout: UPDATE_MS_MAX, env })
    const packages = ['install', '-y', '--no-install-recommends', 'chromium']
    await run('apt-get', packages, { timeout: INSTALL_MS_MAX, env, maxBuffer: 64 * 1024 * 1024 })
  } catch (error) {
    throw new Error(`${why}, and apt-get cannot install it: ${advice}`, { cause: error })
  }
}
