// What `npm run test:cluster -- --stay` prints: how to use the running cluster by hand.
import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import type { Cluster } from '../../k8s/cluster/start-cluster.ts'
import { findHelm } from '../dependencies/helm.ts'
import { DEFINITIONS_NAMESPACE, ownValues, RELEASE } from './release.ts'

const run = promisify(execFile)
const RUN_MS_MAX = 60_000

type DescribedCluster = Pick<Cluster, 'pid' | 'kubeconfig' | 'logs'>

/** Describes the commands, images and logs of the cluster; `programs` contains kubectl. */
export async function describeCluster(
  cluster: DescribedCluster,
  programs: string,
): Promise<string> {
  const list = ['ctr', '--namespace', 'k8s.io', 'images', 'list', '--quiet']
  const inNode = [...targetOf(cluster), '--mount', '--pid', '--', ...list]
  const { stdout } = await run('nsenter', inNode, { timeout: RUN_MS_MAX })
  const images = stdout.split('\n').filter((name) => name.startsWith('localhost/'))
  const path = [dirname(await findHelm(4)), programs, dirname(process.execPath)].join(':')
  return renderDescription(cluster, { images, path })
}

/** The flags with which `nsenter` enters the cluster's network. */
function targetOf({ pid }: DescribedCluster): readonly string[] {
  return ['--target', String(pid), '--net']
}

/** Renders the description, for the images in the cluster and the PATH of a shell. */
export function renderDescription(
  cluster: DescribedCluster,
  { images, path }: { readonly images: readonly string[]; readonly path: string },
): string {
  const { kubeconfig, logs } = cluster
  const into = (namespace: string) => `-n ${namespace} --create-namespace --wait`
  return `
A shell in the cluster's network, with kubectl, helm and node; start it in this checkout:

  KUBECONFIG=${kubeconfig} PATH=${path}:$PATH nsenter ${targetOf(cluster).join(' ')} -- bash

The images of the cluster, which cannot pull others:

${images.map((name) => `  ${name}\n`).join('')}
Install both charts with them, in that shell:

  helm upgrade --install curtail-crds charts/curtail-crds ${into(DEFINITIONS_NAMESPACE)}
  helm install ${RELEASE} charts/curtail ${into(RELEASE)} --timeout 10m \\
    ${ownValues.join(' ')}

The logs of the cluster's components are in ${logs}. Ctrl-C stops the cluster.`
}
