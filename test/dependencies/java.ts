// The dependencies `java`, version 17, and Maven: on the machine, or installed from the packages of
// the distribution, as root. Throws the reason if one is unavailable.
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { installPackages } from './apt.ts'

const run = promisify(execFile)

const JVMS = '/usr/lib/jvm'
const PROBE_MS_MAX = 20_000

/** A working Java. */
export interface Java {
  readonly path: string
  /** The full version, such as `17.0.15+6-Debian-1deb12u1`. */
  readonly version: string
}

/** A Java 17, which Cassandra 5.0 requires: in JAVA_HOME, on PATH, or of the distribution. */
export async function findJava(): Promise<Java> {
  const found = await searchJava()
  if (found !== undefined) return found
  await installPackages('Java 17 is not installed', ['openjdk-17-jre-headless'])
  const installed = await searchJava()
  if (installed === undefined) throw new Error('Java 17 is installed, but cannot be run')
  return installed
}

/** Finds or installs Maven. Resolves with its command. */
export async function findMaven(): Promise<string> {
  const canRun = () =>
    run('mvn', ['--version'], { timeout: PROBE_MS_MAX }).then(
      () => true,
      () => false,
    )
  if (await canRun()) return 'mvn'
  await installPackages('mvn is not on PATH', ['maven'])
  if (await canRun()) return 'mvn'
  throw new Error('Maven is installed, but cannot be run')
}

async function searchJava(): Promise<Java | undefined> {
  const home = process.env['JAVA_HOME']
  const named = home === undefined || home === '' ? [] : [join(home, 'bin', 'java')]
  const jvms = await readdir(JVMS).catch(() => []) // no such folder without a packaged Java
  const packaged = jvms
    .filter((name) => name.startsWith('java-17-openjdk'))
    .map((name) => join(JVMS, name, 'bin', 'java'))
  for (const path of [...named, 'java', ...packaged]) {
    const version = await versionOf(path)
    if (version?.startsWith('17.') === true) return { path, version }
  }
  return undefined
}

/** The version that a command reports; undefined if it is not a working Java. */
async function versionOf(path: string): Promise<string | undefined> {
  const args = ['-XshowSettings:properties', '-version']
  const result = await run(path, args, { timeout: PROBE_MS_MAX }).catch(() => undefined)
  return /java\.runtime\.version = (\S+)/.exec(result?.stderr ?? '')?.[1]
}
