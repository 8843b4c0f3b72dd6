// Uninstalls the release and installs another of the same name: only the objects that the chart
// documents remain, and the new release has the same links and code secret. It is installed with
// Helm 3; the other tests use Helm 4.
import { beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import { getObject, kubectl } from './cluster.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  RELEASE,
  createLink,
  uninstall,
} from './release.ts'

const TERMINATION_MS_MAX = 120_000

beforeAll(() => ensureRelease(), INSTALL_MS_MAX)

/** The objects of the namespace, without those that Kubernetes creates in every namespace. */
async function listObjects(): Promise<readonly string[]> {
  const kinds = await kubectl('api-resources', '--namespaced', '--verbs=list', '-o', 'name')
  const listed = kinds
    .trim()
    .split('\n')
    .filter((kind) => !/^events|^pods\.metrics/.test(kind))
  const names = await kubectl('get', listed.join(','), '--namespace', RELEASE, '-o', 'name')
  const byKubernetes = /^(configmap\/kube-root-ca\.crt|serviceaccount\/default)$/
  return names
    .trim()
    .split('\n')
    .filter((name) => name !== '' && !byKubernetes.test(name))
    .sort()
}

async function codeSecret(): Promise<unknown> {
  const args = ['secret', `${FULL_NAME}-code-secret`, '--namespace', RELEASE]
  return (await getObject<{ data: unknown }>(...args)).data
}

test(
  'an uninstall keeps the claim, the Secrets, the lists and the Lease; a reinstall has the links',
  async () => {
    const code = await createLink(await edgeUrl(), 'https://example.com/stays')
    const secret = await codeSecret()
    await uninstall()
    const kept = [
      `configmap/${FULL_NAME}-blocked-targets`,
      // The leading controller creates it; the next release uses it.
      'lease.coordination.k8s.io/curtail-controller',
      `persistentvolumeclaim/data-${FULL_NAME}-cassandra-0`,
      `secret/${FULL_NAME}-api-keys`,
      `secret/${FULL_NAME}-code-secret`,
    ]
    // helm does not wait for terminating pods.
    const isPod = (name: string) => name.startsWith('pod/')
    await waitFor(
      'the pods to terminate',
      async () => !(await listObjects()).some(isPod),
      TERMINATION_MS_MAX,
    )
    expect(await listObjects()).toEqual(kept)
    await ensureRelease(3)
    expect(await codeSecret()).toEqual(secret)
    const response = await fetch(`${await edgeUrl()}/${code}`, { redirect: 'manual' })
    expect(response.headers.get('Location')).toBe('https://example.com/stays')
    // Ready means that the first request succeeds, even after a negative DNS response was cached.
    await createLink(await edgeUrl(), 'https://example.com/first')
  },
  2 * INSTALL_MS_MAX,
)
