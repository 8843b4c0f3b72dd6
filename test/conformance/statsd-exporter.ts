// The dependency `statsd_exporter`, in the version of the reference's compose file: the binary that
// STATSD_EXPORTER names, or one that Go builds from its module, whose checksum Go verifies.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cachedDependency } from '../dependencies/dependency-cache.ts'

const run = promisify(execFile)
const VERSION = 'v0.18.0'
const BUILD_MS_MAX = 600_000

/** Returns its path, or throws the reason why it is unavailable. */
export async function findStatsdExporter(): Promise<string> {
  const given = process.env['STATSD_EXPORTER']
  if (given !== undefined && given !== '') return given
  const folder = await cachedDependency(`statsd-exporter-${VERSION}`, async (into) => {
    const env = { ...process.env, GOBIN: into, GOFLAGS: '' }
    const module = `github.com/prometheus/statsd_exporter@${VERSION}`
    const options = { timeout: BUILD_MS_MAX, env, cwd: into }
    await run('go', ['install', module], options).catch((error: unknown) => {
      const advice = 'set STATSD_EXPORTER to the path of a binary'
      throw new Error(`Go cannot build statsd_exporter: ${advice}`, { cause: error })
    })
  })
  return join(folder, 'statsd_exporter')
}
