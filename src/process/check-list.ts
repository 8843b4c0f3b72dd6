// Checks the files of a list. Here, faulty lines are errors; a running process ignores and reports
// them.
import { ConfigError } from '../config/config.ts'
import { messageOf } from '../resilience/message-of.ts'
import { filesOf, type WatchedListOptions } from './watched-list.ts'

const FAULTS_MAX = 10

/**
 * Loads a list once. Throws ConfigError with its faulty lines, or why it cannot be loaded. A list
 * that does not exist has no problems: it may be created later.
 */
export async function checkList(
  setting: string,
  { path, suffix, load }: Pick<WatchedListOptions<unknown>, 'path' | 'suffix' | 'load'>,
): Promise<void> {
  if (path === undefined) return
  const faults = await faultsOf(path, { suffix, load }).catch((error: unknown) => {
    const cause = messageOf(error)
    throw new ConfigError([
      `${setting} must name readable files: current value is ${path}: ${cause}`,
    ])
  })
  const more = faults.length - FAULTS_MAX
  const problems = faults.slice(0, FAULTS_MAX).map((fault) => `${setting}: ${fault}`)
  if (more > 0) problems.push(`${setting}: and ${more} more faulty lines`)
  if (problems.length > 0) throw new ConfigError(problems)
}

async function faultsOf(
  path: string,
  { suffix, load }: Pick<WatchedListOptions<unknown>, 'suffix' | 'load'>,
): Promise<readonly string[]> {
  return (await load((await filesOf(path, suffix)) ?? [])).faults
}
