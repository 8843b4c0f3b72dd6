// The dependency `kubeconform`, which validates manifests against schemas: Go builds it once from
// its module, pinned by k8s/cluster/kubeconform/go.sum.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runGo } from './go.ts'
import { cachedDependency } from './dependency-cache.ts'

const VERSION = '0.8.0'
const BUILD_MS_MAX = 300_000
const module = fileURLToPath(new URL('../../k8s/cluster/kubeconform', import.meta.url))

/** The path of kubeconform. Throws the reason if the build fails. */
export async function findKubeconform(): Promise<string> {
  const folder = await cachedDependency(`kubeconform-${VERSION}`, async (into) => {
    const out = join(into, 'kubeconform')
    const args = ['-trimpath', '-ldflags=-s -w', '-o', out]
    const program = 'github.com/yannh/kubeconform/cmd/kubeconform'
    await runGo(['build', ...args, program], { cwd: module, msMax: BUILD_MS_MAX })
  })
  return join(folder, 'kubeconform')
}
