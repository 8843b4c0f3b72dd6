// The jars of one exact version of Apache Cassandra: Maven downloads them once, and each is
// verified against the checksums in cassandra/jars.sha256.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findMaven } from './java.ts'
import { cachedDependency } from './dependency-cache.ts'

const run = promisify(execFile)

/** The version of Cassandra in tests; cassandra/pom.xml contains it too. */
export const CASSANDRA_VERSION = '5.0.9'
/** The folder of Cassandra's files in the checkout. */
export const cassandraFiles = join(dirname(fileURLToPath(import.meta.url)), 'cassandra')

const FETCH_MS_MAX = 600_000

/** The class path of a node: every jar, sorted by name. Throws the reason if one is unavailable. */
export async function findCassandraJars(): Promise<string> {
  const folder = await cachedDependency(`cassandra-${CASSANDRA_VERSION}`, fetchJars)
  const names = await readdir(folder)
  return names
    .sort()
    .map((name) => join(folder, name))
    .join(':')
}

async function fetchJars(folder: string): Promise<void> {
  const mvn = await findMaven()
  const quiet = ['-q', '-B', '-ntp', '-f', join(cassandraFiles, 'pom.xml')]
  const args = [...quiet, 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`]
  await run(mvn, args, { timeout: FETCH_MS_MAX }).catch(() => {
    // The output of Maven may contain the address of a private registry.
    throw new Error(`mvn cannot download Cassandra ${CASSANDRA_VERSION}: run it for its output`)
  })
  await checkJars(folder)
}

/** Throws if the jars in the folder are not exactly those in the list. */
async function checkJars(folder: string): Promise<void> {
  const list = await readFile(join(cassandraFiles, 'jars.sha256'), 'utf8')
  const names = await readdir(folder)
  const lines = names.sort().map(async (name) => {
    const bytes = await readFile(join(folder, name))
    return `${createHash('sha256').update(bytes).digest('hex')}  ${name}`
  })
  const found = await Promise.all(lines)
  const expected = list.split('\n').filter((line) => line !== '')
  const unexpected = found.filter((line) => !expected.includes(line))
  const missing = expected.filter((line) => !found.includes(line))
  if (unexpected.length + missing.length === 0) return
  const faults = [
    ...unexpected.map((line) => `unexpected ${line}`),
    ...missing.map((line) => `missing ${line}`),
  ]
  throw new Error(`the jars of Cassandra do not match jars.sha256: ${faults.join('; ')}`)
}
