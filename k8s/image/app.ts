// Writes the image's folder /app: the bundle, the licences of the bundled packages, and the bill of
// materials, which also lists the packages of the base. The Dockerfile and build.ts both use it.
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { bundle, type Rewrite, root } from './bundle.ts'
import { PACKAGE_METADATA } from './root-folder.ts'
import { type DebianPackage, type NpmPackage, renderSbom } from './sbom.ts'

const run = promisify(execFile)
const PROBE_MS_MAX = 20_000
const TERMS = /^(licen[cs]e|copying|notice)/i

const packageFile = z.object({ name: z.string(), version: z.string(), license: z.string() })
const lockFile = z.object({
  packages: z.record(z.string(), z.object({ integrity: z.string().optional() })),
})
const versions = z.record(z.string(), z.string())

/** The base of an image. */
export interface Base {
  /** The root of the image without /app. */
  readonly folder: string
  /** A Node.js of the same version that this machine can run; by default the one in the base. */
  readonly node?: string
}

/** Writes /app to `folder`, which must be empty. */
export async function writeApp(folder: string, base: Base, rewrite?: Rewrite): Promise<void> {
  const { packages } = await bundle(folder, rewrite)
  const found = await Promise.all(packages.map(readPackage))
  for (const [i, place] of packages.entries()) {
    const { name, version, license } = at(found, i)
    await copyLicenceFiles(place, join(folder, 'licences', `${name}@${version}`), license)
  }
  await cp(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  const own = packageFile.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')))
  const materials = { ...own, packages: unique(found), ...(await readBase(base)) }
  await writeFile(join(folder, 'sbom.json'), renderSbom(materials))
}

function at<T>(all: readonly T[], index: number): T {
  const one = all[index]
  if (one === undefined) throw new Error(`no element at ${index}`)
  return one
}

/** Removes duplicates: two folders may contain the same version of one package. */
function unique(packages: readonly NpmPackage[]): readonly NpmPackage[] {
  const byName = new Map(packages.map((one) => [`${one.name}@${one.version}`, one]))
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
}

async function readPackage(place: string): Promise<NpmPackage> {
  const text = await readFile(join(root, place, 'package.json'), 'utf8')
  const { name, version, license } = packageFile.parse(JSON.parse(text))
  const lock = lockFile.parse(JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')))
  return { name, version, license, integrity: lock.packages[place]?.integrity }
}

/** Copies a package's licence files, or writes the licence of package.json if it has none. */
async function copyLicenceFiles(place: string, folder: string, license: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const names = (await readdir(join(root, place))).filter((name) => TERMS.test(name))
  for (const name of names) {
    await cp(join(root, place, name), join(folder, name), { recursive: true })
  }
  if (names.length === 0) await writeFile(join(folder, 'LICENSE'), `${license}\n`)
}

/** Reads the Node.js and Debian packages of the base. */
async function readBase(given: Base) {
  const { folder: base, node = join(base, 'nodejs', 'bin', 'node') } = given
  const { stdout } = await run(node, ['-p', 'JSON.stringify(process.versions)'], {
    timeout: PROBE_MS_MAX,
  })
  const folder = join(base, PACKAGE_METADATA)
  const names = (await readdir(folder)).filter((name) => !name.endsWith('.md5sums'))
  const files = await Promise.all(names.sort().map((name) => readFile(join(folder, name), 'utf8')))
  const release = await readFile(join(base, 'etc', 'os-release'), 'utf8')
  const id = /^VERSION_ID="?([^"\n]+)/m.exec(release)?.[1] ?? ''
  return {
    nodeVersions: versions.parse(JSON.parse(stdout)),
    basePackages: files.map(parseMetadata),
    distribution: `debian-${id}`,
  }
}

function parseMetadata(text: string): DebianPackage {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? ''
  return {
    name: field('Package'),
    version: field('Version'),
    architecture: field('Architecture'),
  }
}
