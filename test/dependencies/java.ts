// The dependency `java`: a Java 17 of the machine, or one from the distribution's packages, and
// Maven beside it. Installs only as root; throws the reason where they cannot be had.
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { installPackages } from './apt.ts'

const run = promisify(execFile)

const JVMS = '/usr/lib/jvm'
const PROBE_MS_MAX = 20_000

/** A Java that can be run. */
export interface Java {
  readonly path: string
  /** Its full version, such as `17.0.15+6-Debian-1deb12u1`. */
  readonly version: string
}

/** A Java 17, which Cassandra 5.0 wants: of JAVA_HOME, of PATH, or of the distribution. */
export async function findJava(): Promise<Java> {
  const found = await lookForJava()
  if (found !== undefined) return found
  await installPackages('there is no Java 17', ['openjdk-17-jre-headless'])
  const installed = await lookForJava()
  if (installed === undefined) throw new Error('Java 17 was installed, but cannot be run')
  return installed
}

/** Makes sure that Maven can be run; resolves to its command. */
export async function findMaven(): Promise<string> {
  const canRun = () =>
    run('mvn', ['--version'], { timeout: PROBE_MS_MAX }).then(
      () => true,
      () => false,
    )
  if (await canRun()) return 'mvn'
  await installPackages('there is no mvn on PATH', ['maven'])
  if (await canRun()) return 'mvn'
  throw new Error('Maven was installed, but cannot be run')
}

async function lookForJava(): Promise<Java | undefined> {
  const home = process.env['JAVA_HOME']
  const named = home === undefined || home === '' ? [] : [join(home, 'bin', 'java')]
  const jvms = await readdir(JVMS).catch(() => []) // no such folder: no Java of the distribution
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
  const told = await run(path, args, { timeout: PROBE_MS_MAX }).catch(() => undefined)
  return told === undefined ? undefined : /java\.runtime\.version = (\S+)/.exec(told.stderr)?.[1]
}
