// Finds a command that tests need, or installs it from the packages of the distribution, as root.
// Throws the reason if it is unavailable.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

const PROBE_MS_MAX = 10_000
const UPDATE_MS_MAX = 180_000
const INSTALL_MS_MAX = 400_000

/**
 * Finds `command`, or installs the package of that name. With the arguments `probe` the command
 * only exits with 0.
 */
export async function findAptDependency(
  command: string,
  probe: readonly string[] = ['--version'],
): Promise<string> {
  const canRun = () =>
    run(command, probe, { timeout: PROBE_MS_MAX }).then(
      () => true,
      () => false,
    )
  if (await canRun()) return command
  await installPackages(`${command} is not on PATH`, [command])
  if (await canRun()) return command
  throw new Error(`${command} is installed, but cannot be run`)
}

/** Installs packages as root. Throws `why` and the reason if the installation fails. */
export async function installPackages(why: string, names: readonly string[]): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error(`${why}, and only root can install it`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  try {
    await run('apt-get', ['update'], { timeout: UPDATE_MS_MAX, env })
    const install = ['install', '-y', '--no-install-recommends', ...names]
    await run('apt-get', install, { timeout: INSTALL_MS_MAX, env, maxBuffer: 64 * 1024 * 1024 })
  } catch (error) {
    throw new Error(`${why}, and apt-get cannot install it`, { cause: error })
  }
}
