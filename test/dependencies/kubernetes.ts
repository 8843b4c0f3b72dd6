// The dependency `kubernetes`: the programs of the test cluster's one node, which no registry ships
// and Go builds once from their published modules, every source pinned by k8s/cluster/go/go.sum. A
// build that was cut short goes on where it stopped: Go keeps what it has compiled.
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { runGo } from './go.ts'
import { KUBERNETES_VERSION, kubernetesModule } from './kubernetes-schemas.ts'
import { cachedDependency } from './dependency-cache.ts'

/** About 13 CPU minutes if nothing is compiled yet; on two busy cores much longer. */
const BUILD_MS_MAX = 30 * 60_000

/** Names of the programs that are one binary, which looks at the name it is called by. */
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
 * Folder of the programs, with `coredns` and `pause` among them; built first where there is none,
 * which `say` is told. Throws the reason where that fails or takes too long.
 */
export async function findKubernetes(say: (line: string) => void): Promise<string> {
  const name = `kubernetes-${KUBERNETES_VERSION}-${await fingerprint()}`
  return cachedDependency(name, async (into) => {
    say(`building Kubernetes ${KUBERNETES_VERSION}, once: 7 minutes on two idle cores`)
    const startedMs = performance.now()
    await build(into)
    say(`built Kubernetes in ${Math.round((performance.now() - startedMs) / 1000)} s`)
  })
}

/** What the build depends on, in a few characters. */
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

/** Without these the servers say v0.0.0, and charts that name a kubeVersion are refused. */
function versionFlags(): string {
  const [major = '', minor = ''] = KUBERNETES_VERSION.split('.')
  const facts = {
    gitVersion: `v${KUBERNETES_VERSION}`,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
  }
  const packages = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']
  return packages
    .flatMap((path) => Object.entries(facts).map(([name, fact]) => `-X ${path}.${name}=${fact}`))
    .join(' ')
}
