// Reduces the time for which the cluster's DNS caches the addresses of pods to one second, because
// a rollout waits at each pod until no Envoy uses an outdated address (the value `dnsSeconds`).
import type { Cluster } from '../../k8s/cluster/start-cluster.ts'

const named = ['configmap', 'coredns'] as const
const inNamespace = ['--namespace', 'kube-system'] as const

/** Replaced lines of k8s/cluster/manifests.yaml. Negative responses are still cached for 5 s. */
const replaced = [
  [/^( +)ttl 5$/m, '$1ttl 1'],
  [/^( +)cache 5$/m, '$1cache {\n$1    success 9984 1\n$1    denial 9984 5\n$1}'],
] as const

/** Changes the configuration of CoreDNS and restarts it; resolves when it is ready. */
export async function reduceDnsCache(cluster: Pick<Cluster, 'kubectl'>): Promise<void> {
  const before = await cluster.kubectl([
    ...['get', ...named, ...inNamespace],
    ...['-o', 'jsonpath={.data.Corefile}'],
  ])
  const Corefile = replaced.reduce((text, [line, lines]) => {
    if (!line.test(text)) throw new Error(`the Corefile has changed: no line matches ${line}`)
    return text.replace(line, lines)
  }, before)
  const patch = JSON.stringify({ data: { Corefile } })
  await cluster.kubectl(['patch', ...named, ...inNamespace, '-p', patch])
  const deployment = ['deployment/coredns', ...inNamespace]
  await cluster.kubectl(['rollout', 'restart', ...deployment])
  await cluster.kubectl(['rollout', 'status', ...deployment, '--timeout=60s'])
}
