// The source tree of envoyproxy/ratelimit that the conformance run reads from REFERENCE_GIT, and
// the environment in which it starts its service. The run deletes its copy when it stops.
import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'

const run = promisify(execFile)
const GIT_MS_MAX = 60_000
const paths = ['integration-test', 'examples', 'test/config']

/** The input of the run is invalid: it prints one sentence and exits with code 2. */
export class CannotRun extends Error {}

/** Unpacks the test files of the newest commit into `folder`; resolves to the commit's name. */
export async function unpackReference(git: string, folder: string): Promise<string> {
  const archive = join(folder, 'reference.tar')
  const args = ['archive', '--format=tar', `--output=${archive}`, 'HEAD', ...paths]
  const within = { timeout: GIT_MS_MAX }
  try {
    await run('git', [`--git-dir=${git}`, ...args], within)
    await run('tar', ['xf', archive, '-C', folder], within)
    await rm(archive)
    return (await run('git', [`--git-dir=${git}`, 'rev-parse', '--short', 'HEAD'], within)).stdout
  } catch (error) {
    const what = 'REFERENCE_GIT must name the git directory of envoyproxy/ratelimit'
    throw new CannotRun(`${what}: ${(error as Error).message.trim()}`, { cause: error })
  }
}

/** The service's environment in the reference's compose file of the integration tests. */
export async function readServiceEnv(reference: string): Promise<Record<string, string>> {
  const file = join(reference, 'integration-test/docker-compose-integration-test.yml')
  const compose = parse(await readFile(file, 'utf8')) as {
    services: { ratelimit: { environment: string[] } }
  }
  const lines = compose.services.ratelimit.environment
  return Object.fromEntries(
    lines.map((line): [string, string] => {
      const at = line.indexOf('=')
      return [line.slice(0, at), line.slice(at + 1)]
    }),
  )
}
