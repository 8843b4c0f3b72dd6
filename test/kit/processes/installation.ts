// What the launcher installs in a copy of the checkout.
import { execFile } from 'node:child_process'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** By how much an announced size may differ from the installed one, as a ratio. */
export const SIZE_TOLERANCE = 0.1

/** The megabytes that the files of a folder take on disk, without the caches of tools. */
export async function megabytesOf(path: string): Promise<number> {
  const { stdout } = await run('du', ['-sm', '--exclude=.cache', path])
  return Number(/^\d+/.exec(stdout)?.[0])
}

/** The size of an installation that the launcher prints before it starts. */
export function announcedSize(output: string): number {
  return Number(/^curtail: installing \d+ packages.*, about (\d+) MB, once$/m.exec(output)?.[1])
}

/**
 * Copies the Node.js of this test to the place where `npm install` links it; returns its path. npm
 * scripts prefer it to that of the system, and `npm ci` deletes it: the launcher must install one.
 */
export async function addLinkedNode(checkout: string): Promise<string> {
  const folder = join(checkout, 'node_modules/.bin')
  await mkdir(folder, { recursive: true })
  await cp(process.execPath, join(folder, 'node'))
  return join(folder, 'node')
}
