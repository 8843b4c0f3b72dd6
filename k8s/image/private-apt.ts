// apt with a state of its own, for one architecture: it reads the machine's sources and keys, and
// changes nothing on the machine.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const APT_MS_MAX = 300_000

/** An apt that knows the current packages of the machine's sources. */
export interface Apt {
  /** Contains the downloaded packages. */
  readonly folder: string
  /** Downloads packages, such as `libc6=2.36-9`. */
  download(specs: readonly string[]): Promise<void>
  /** The version of a package that apt would install. */
  candidate(name: string): Promise<{ readonly version: string; readonly sha256: string }>
  /** Removes the folder. */
  close(): Promise<void>
}

function settings(folder: string, architecture: string): string {
  return [
    `APT::Architecture "${architecture}";`,
    `APT::Architectures { "${architecture}"; };`,
    'APT::Sandbox::User "root";',
    // Otherwise the update succeeds with the lists of the mirrors that it reached.
    'APT::Update::Error-Mode "any";',
    'Acquire::Languages "none";',
    'Dir::State::status "/dev/null";',
    `Dir::State::lists "${folder}/lists";`,
    `Dir::Cache "${folder}/cache";`,
    '',
  ].join('\n')
}

/** Downloads the lists of packages for an architecture. Throws the errors of apt. */
export async function prepareApt(architecture: string): Promise<Apt> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-apt-'))
  const config = join(folder, 'apt.conf')
  const env = { ...process.env, APT_CONFIG: config, LC_ALL: 'C' }
  const apt = async (program: string, ...args: readonly string[]) => {
    const options = { timeout: APT_MS_MAX, cwd: folder, env }
    return (await run(program, args, options)).stdout
  }
  const close = () => rm(folder, { recursive: true })
  try {
    for (const name of ['lists/partial', 'cache/archives/partial']) {
      await mkdir(join(folder, name), { recursive: true })
    }
    await writeFile(config, settings(folder, architecture))
    await apt('apt-get', '--quiet', 'update')
  } catch (error) {
    await close()
    throw error
  }
  return {
    folder,
    close,
    async download(specs) {
      await apt('apt-get', '--quiet', 'download', ...specs).catch((error: unknown) => {
        const advice = 'if Debian has replaced a version, update k8s/image/base-packages.json'
        throw new Error(`Cannot download the base of the image: ${advice}`, { cause: error })
      })
    },
    async candidate(name) {
      const shown = await apt('apt-cache', 'show', '--no-all-versions', name)
      const field = (key: string) => new RegExp(`^${key}: (.*)$`, 'm').exec(shown)?.[1] ?? ''
      return { version: field('Version'), sha256: field('SHA256') }
    },
  }
}
