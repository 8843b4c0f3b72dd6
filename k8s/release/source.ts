// The source of a release: the commit of the checkout, which must be clean, and whose version must
// be the one to release.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { z } from 'zod'
import { root } from '../image/bundle.ts'

const run = promisify(execFile)
const GIT_MS_MAX = 30_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
/** The folders that the build reads; node_modules is not committed. */
const READ_FOLDERS = ['src', 'k8s', 'charts']

/** The charts of a release, by the names of their folders. */
export const charts = ['curtail', 'curtail-crds', 'curtail-ratelimit'] as const

const chartFile = z.object({ version: z.string(), appVersion: z.string() })
const packageFile = z.object({ version: z.string() })

/** What a release is built from. */
export interface Source {
  readonly version: string
  readonly commit: string
  /** Of the commit, or SOURCE_DATE_EPOCH: `2026-01-31T12:00:00Z`. */
  readonly created: string
}

async function git(...args: readonly string[]): Promise<string> {
  const options = { cwd: root, timeout: GIT_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }
  return (await run('git', args, options)).stdout
}

/** Reads the source of the release `version`. Throws the reason if it cannot be released. */
export async function readSource(version: string): Promise<Source> {
  await checkClean(version)
  const wrong = (await readVersions()).filter(([, found]) => found !== version)
  if (wrong.length > 0) {
    const list = wrong.map(([name, found]) => `${name} is ${found}`).join(', ')
    throw new Error(`Cannot release ${version}: ${list}`)
  }
  const commit = await readCommit()
  const created = new Date((await readSeconds()) * 1000).toISOString().replace('.000Z', 'Z')
  return { version, commit, created }
}

/** Throws an error if the checkout changed during the build, which wrote to `folder`. */
export async function checkUnchanged(source: Source, folder: string): Promise<void> {
  await checkClean(source.version, folder)
  const commit = await readCommit()
  if (commit === source.commit) return
  throw new Error(`Cannot release ${source.version}: the commit changed to ${commit}`)
}

/**
 * Throws an error unless the checkout has exactly the files of its commit; the build reads whole
 * folders, so that they must not contain ignored files either.
 */
async function checkClean(version: string, folder?: string): Promise<void> {
  const place = relative(root, folder ?? root)
  const own = place === '' || place.startsWith('..') ? [] : [`:(exclude)${place}`]
  const status = ['status', '--porcelain', '--untracked-files=all']
  const changes = await git(...status, '--', '.', ...own)
  const ignored = await git(...status, '--ignored', '--', ...READ_FOLDERS)
  const found = new Set(`${changes}${ignored}`.trimEnd().split('\n'))
  found.delete('')
  if (found.size === 0) return
  const list = [...found].join('\n')
  throw new Error(`Cannot release ${version}: commit or remove these files first\n${list}`)
}

async function readCommit(): Promise<string> {
  return (await git('rev-parse', 'HEAD')).trim()
}

async function readSeconds(): Promise<number> {
  const given = process.env['SOURCE_DATE_EPOCH']
  if (given !== undefined && !/^\d+$/.test(given))
    throw new Error(`SOURCE_DATE_EPOCH must be a number of seconds: it is ${given}`)
  const show = ['show', '--no-patch', '--no-show-signature', '--format=%ct', 'HEAD']
  return Number(given ?? (await git(...show)))
}

async function readVersions(): Promise<readonly (readonly [string, string])[]> {
  const own = packageFile.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')))
  const found: (readonly [string, string])[] = [['version in package.json', own.version]]
  for (const name of charts) {
    const path = join('charts', name, 'Chart.yaml')
    const chart = chartFile.parse(parse(await readFile(join(root, path), 'utf8')))
    found.push([`version in ${path}`, chart.version], [`appVersion in ${path}`, chart.appVersion])
  }
  return found
}

/** The paths of the committed files below `folder`, relative to it. */
export async function listFiles(folder: string): Promise<readonly string[]> {
  const list = await git('ls-files', '-z', '--', folder)
  const prefix = `${folder}/`
  return list
    .split('\0')
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length))
}
