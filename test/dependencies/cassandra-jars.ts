// The jars of Apache Cassandra, of one exact version: downloaded once by Maven, and every one
// verified against the checksums of cassandra/jars.sha256. Starts nothing.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findMaven } from './java.ts'
import { cachedDependency } from './dependency-cache.ts'

const run = promisify(execFile)

/** The version of Cassandra that tests run on; cassandra/pom.xml names it too. */
export const CASSANDRA_VERSION = '5.0.9'
/** Folder of Cassandra's files in the checkout. */
export const cassandraFiles = join(dirname(fileURLToPath(import.meta.url)), 'cassandra')

const FETCH_MS_MAX = 600_000

/** The class path of a node: every jar, always in one order. Throws why they are unavailable. */
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
    // What Maven says may name the registry that this machine uses.
    throw new Error(`mvn cannot fetch Cassandra ${CASSANDRA_VERSION}: run it by hand to see why`)
  })
  await checkJars(folder)
}

/** Throws where the folder holds other jars than the list names, or other bytes. */
async function checkJars(folder: string): Promise<void> {
  const list = await readFile(join(cassandraFiles, 'jars.sha256'), 'utf8')
  const names = await readdir(folder)
  const lines = names.sort().map(async (name) => {
    const bytes = await readFile(join(folder, name))
    return `${createHash('sha256').update(bytes).digest('hex')}  ${name}`
  })
  const found = await Promise.all(lines)
  const known = list.split('\n').filter((line) => line !== '')
  const strange = found.filter((line) => !known.includes(line))
  const missing = known.filter((line) => !found.includes(line))
  if (strange.length + missing.length === 0) return
  const all = [...strange.map((line) => `got ${line}`), ...missing.map((line) => `want ${line}`)]
  throw new Error(`the jars of Cassandra do not match jars.sha256: ${all.join('; ')}`)
}
