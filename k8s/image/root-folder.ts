// Builds the root file system of an image from programs of this machine, the shared libraries that
// they link to, and the metadata of the libraries' Debian packages, for vulnerability scanners.
import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, realpath, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const RUN_MS_MAX = 60_000
/** As in the distroless images: one file for each package, with the fields of its status. */
export const PACKAGE_METADATA = 'var/lib/dpkg/status.d'

/** The default user of an image's programs. */
export interface ImageUser {
  readonly name: string
  readonly id: number
}

/** Creates the files that every root file system needs: users, name services, /tmp. */
export async function createRoot(root: string, user: ImageUser): Promise<void> {
  const id = String(user.id)
  await chmod(root, 0o755)
  await mkdir(join(root, 'tmp'))
  await chmod(join(root, 'tmp'), 0o1777)
  const users = ['root:x:0:0:root:/:/sbin/nologin', `${user.name}:x:${id}:${id}::/:/sbin/nologin`]
  await writeText(root, 'etc/passwd', `${users.join('\n')}\n`)
  await writeText(root, 'etc/group', `root:x:0:\n${user.name}:x:${id}:\n`)
  await writeText(root, 'etc/nsswitch.conf', 'hosts: files dns\n')
}

/** Writes a file that every user can read. */
export async function writeText(root: string, path: string, text: string): Promise<void> {
  await mkdir(join(root, dirname(path)), { recursive: true })
  await writeFile(join(root, path), text, { mode: 0o644 })
}

/** Copies a file and its executable bit. */
export async function addFile(root: string, from: string, path: string): Promise<void> {
  await mkdir(join(root, dirname(path)), { recursive: true })
  await copyFile(from, join(root, path))
  const { mode } = await stat(from)
  await chmod(join(root, path), (mode & 0o111) === 0 ? 0o644 : 0o755)
}

/**
 * Adds the shared libraries that programs of this machine link to, at their own paths, and the
 * metadata of their packages; libraries below `copied` are already in the root.
 */
export async function addLibraries(
  root: string,
  programs: readonly string[],
  copied = root,
): Promise<void> {
  const wanted = new Set<string>()
  for (const program of programs) {
    for (const library of await librariesOf(program)) wanted.add(library)
  }
  for (const library of [...wanted].sort()) {
    if (library.startsWith(copied)) continue
    await addFile(root, await realpath(library), library)
    await addPackageMetadata(root, await packageOf(library))
  }
}

async function librariesOf(program: string): Promise<readonly string[]> {
  const { stdout } = await run('ldd', [program], { timeout: RUN_MS_MAX }).catch(
    (error: unknown) => {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
      if (`${stdout}${stderr}`.includes('not a dynamic executable')) return { stdout: '' }
      throw error
    },
  )
  const missing = /^\s*(\S+) => not found/m.exec(stdout)?.[1]
  if (missing !== undefined)
    throw new Error(`Cannot add the libraries of ${program}: ${missing} is not installed`)
  return [...stdout.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].map(([, path = '']) => path)
}

/** The Debian package of a file, which may be packaged with or without the prefix /usr. */
async function packageOf(path: string): Promise<string> {
  const places = [path, join('/usr', path), path.replace(/^\/usr/, '')]
  for (const place of places) {
    const result = await run('dpkg-query', ['--search', place], { timeout: RUN_MS_MAX }).catch(
      () => undefined, // not under this name
    )
    const found = result?.stdout.split(':')[0]
    if (found !== undefined) return found
  }
  throw new Error(`${path} is not in a Debian package: images can only be built on Debian 12`)
}

/** The fields of a package's control file that scanners read, as of an installed package. */
export function renderMetadata(control: string): string {
  const fields = /^(Package|Architecture|Version|Source|Maintainer|Homepage): .*\n/gm
  const facts = [...control.matchAll(fields)].map(([line]) => line)
  return `${facts.join('')}Status: install ok installed\n\n`
}

/** Adds the metadata and the licence of a Debian package. */
async function addPackageMetadata(root: string, name: string): Promise<void> {
  const { stdout } = await run('dpkg-query', ['--status', name], { timeout: RUN_MS_MAX })
  await writeText(root, join(PACKAGE_METADATA, basename(name)), renderMetadata(stdout))
  const terms = `usr/share/doc/${name}/copyright`
  await addFile(root, await realpath(join('/', terms)), terms)
}
