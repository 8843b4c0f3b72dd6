// The dependency `kubernetes`: the programs of the test cluster, which no registry ships; Go builds
// them once from their published modules, pinned by k8s/cluster/go/go.sum. An interrupted build
// continues, because Go caches compiled packages.
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { runGo } from './go.ts'
import { KUBERNETES_VERSION, kubernetesModule } from './kubernetes-schemas.ts'
import { cachedDependency } from './dependency-cache.ts'

/** A build needs about 13 CPU minutes with an empty cache, and much longer on two busy cores. */
const BUILD_MS_MAX = 30 * 60_000

/** The programs in one binary, which selects the program by the name of its symlink. */
const PROGRAMS = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-proxy',
  'kube-scheduler',
  'kubectl',
  'kubelet',
] as const

/**
 * The folder of the programs, including `coredns` and `pause`, which are built if they are missing;
 * `log` receives the progress. Throws the reason if the build fails or times out.
 */
export async function findKubernetes(log: (line: string) => void): Promise<string> {
  const name = `kubernetes-${KUBERNETES_VERSION}-${await fingerprint()}`
  return cachedDependency(name, async (into) => {
    log(`building Kubernetes ${KUBERNETES_VERSION}, once: 7 minutes on two idle cores`)
    const startedMs = performance.now()
    await build(into)
    log(`built Kubernetes in ${Math.round((performance.now() - startedMs) / 1000)} s`)
  })
}

/** A hash of the inputs of the build. */
async function fingerprint(): Promise<string> {
  const all = await readdir(kubernetesModule, { recursive: true })
  const sources = all.filter((path) => /\.(go|mod|sum)$/.test(path))
  const hash = createHash('sha256').update(versionFlags())
  for (const path of sources.sort()) hash.update(await readFile(join(kubernetesModule, path)))
  return hash.digest('hex').slice(0, 12)
}

async function build(folder: string): Promise<void> {
  const run = { cwd: kubernetesModule, msMax: BUILD_MS_MAX }
  await mkdir(folder, { recursive: true })
  const flags = ['-trimpath', `-ldflags=-s -w ${versionFlags()}`]
  await runGo(['build', ...flags, '-o', `${folder}/`, './cmd/...'], run)
  for (const program of PROGRAMS) await symlink('kube', join(folder, program))
}

/** Without these flags the servers report v0.0.0, and Helm rejects charts with a kubeVersion. */
function versionFlags(): string {
  const [major = '', minor = ''] = KUBERNETES_VERSION.split('.')
  const variables = {
    gitVersion: `v${KUBERNETES_VERSION}`,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
  }
  const packages = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']
  return packages
    .flatMap((path) =>
      Object.entries(variables).map(([name, value]) => `-X ${path}.${name}=${value}`),
    )
    .join(' ')
}
