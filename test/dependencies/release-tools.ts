// The dependency `release-tools`: a program that pushes a release to its own registry and verifies
// it with sigstore's library, and actionlint, which checks workflows. Go builds both once, pinned
// by release-tools/go.sum.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'

const BUILD_MS_MAX = 600_000
const module = fileURLToPath(new URL('release-tools', import.meta.url))
const programs = ['.', 'github.com/rhysd/actionlint/cmd/actionlint']

/** The folder with `release-tools` and `actionlint`. Throws the reason if a build fails. */
export async function findReleaseTools(): Promise<string> {
  const hash = createHash('sha256')
  for (const name of (await readdir(module)).sort()) hash.update(await readFile(join(module, name)))
  const name = `release-tools-${hash.digest('hex').slice(0, 12)}`
  return cachedDependency(name, async (into) => {
    const args = ['-trimpath', '-ldflags=-s -w', '-o', `${into}/`, ...programs]
    await runGo(['build', ...args], { cwd: module, msMax: BUILD_MS_MAX })
  })
}
