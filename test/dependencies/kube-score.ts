// The dependency `kube-score`, which checks manifests against good practice: Go builds it once from
// its module, pinned by test/dependencies/kube-score/go.sum.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'

const VERSION = '1.20.0'
const BUILD_MS_MAX = 600_000
const module = fileURLToPath(new URL('kube-score', import.meta.url))

/** The path of kube-score. Throws the reason if the build fails. */
export async function findKubeScore(): Promise<string> {
  const folder = await cachedDependency(`kube-score-${VERSION}`, async (into) => {
    const out = join(into, 'kube-score')
    const args = ['-trimpath', '-ldflags=-s -w', '-o', out]
    const program = 'github.com/zegl/kube-score/cmd/kube-score'
    await runGo(['build', ...args, program], { cwd: module, msMax: BUILD_MS_MAX })
  })
  return join(folder, 'kube-score')
}
