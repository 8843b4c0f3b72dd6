// Releases of a clone of the checkout, which has the packages of the checkout. Requires root, for
// mounts.
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { architectures, findAvailablePackages } from '../../../k8s/image/base-packages.ts'
import { root } from '../../../k8s/image/bundle.ts'

const run = promisify(execFile)
const RELEASE_MS_MAX = 500_000
const COMMAND_MS_MAX = 120_000
/** Runs the release in a clone whose packages are those of the checkout. */
const IN_CLONE = 'umask "$1"; mount --bind "$2" node_modules; shift 2; exec "$@"'

/** Runs git as a user of its own. */
export async function git(cwd: string, ...args: readonly string[]): Promise<void> {
  const settings = ['user.name=test', 'user.email=test@example.com', 'commit.gpgsign=false']
  const options = settings.flatMap((one) => ['-c', one])
  await run('git', [...options, ...args], { cwd, timeout: COMMAND_MS_MAX })
}

/** Commits the files of the checkout, which may have changed since its commit, to a new one. */
export async function cloneCheckout(clone: string, version: string): Promise<void> {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { stdout } = await run('git', list, { cwd: root, maxBuffer: 16 * 1024 * 1024 })
  for (const path of stdout.split('\0').filter((one) => one !== '')) {
    // A file that is deleted, but still in the index, is missing.
    await cp(join(root, path), join(clone, path), { verbatimSymlinks: true }).catch(
      (error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      },
    )
  }
  const changelog = await readFile(join(clone, 'CHANGELOG.md'), 'utf8')
  const released = changelog.replace(/^## /m, `## ${version}\n\n- a test\n\n## `)
  await writeFile(join(clone, 'CHANGELOG.md'), released)
  const manifests = join(clone, 'k8s/standalone/kustomization.yaml')
  const current = await readFile(manifests, 'utf8')
  await writeFile(manifests, current.replace(/(?<=newTag: )[\d.]+/, '0.0.0')) // a release sets it
  // A release needs the pinned packages, which Debian's mirrors delete when it replaces them.
  const packages = await findAvailablePackages(architectures)
  await writeFile(join(clone, 'k8s/image/base-packages.json'), JSON.stringify(packages))
  await git(clone, 'init', '--quiet')
  await git(clone, 'add', '--all')
  await git(clone, 'commit', '--quiet', '--message', 'release')
}

/** The process of a release: its file mode mask, and its environment. */
interface Surroundings {
  readonly umask: string
  readonly env?: Readonly<Record<string, string>>
}

/** Releases a clone, and resolves with its output. */
export async function release(
  clone: string,
  { umask, env = {} }: Surroundings,
  ...args: readonly string[]
): Promise<string> {
  await mkdir(join(clone, 'node_modules'), { recursive: true })
  const program = [process.execPath, 'k8s/release/run.ts', ...args]
  const inside = [umask, join(root, 'node_modules'), ...program]
  const options = { cwd: clone, timeout: RELEASE_MS_MAX, env: { ...process.env, ...env } }
  const { stdout } = await run(
    'unshare',
    ['--mount', '/bin/sh', '-euc', IN_CLONE, 'sh', ...inside],
    options,
  )
  return stdout
}
