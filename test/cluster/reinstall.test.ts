// Uninstalls the release and installs the last release with the same name: only the objects that
// the chart documents remain, and the new release has the same links and code secret. Upgrades it,
// rolls it back, and upgrades it to the current version, under load: no request fails, no link is
// lost. Uses Helm 3; the other tests use Helm 4.
import { beforeAll, expect, test } from '@jest/globals'
import { findLastRelease } from '../dependencies/last-release.ts'
import { waitFor } from '../kit/wait-for.ts'
import { getObject, kubectl } from './cluster.ts'
import {
  addressesOf,
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  RELEASE,
  createLink,
  current,
  installVersion,
  rollBack,
  uninstall,
  type Version,
  waitForAllReady,
} from './release.ts'
import { checkLinks, creates, fillLinks, type KnownLink, redirects, underLoad } from './upgrade.ts'

const TERMINATION_MS_MAX = 120_000
const LINKS = 200
/** The checkout with one more schema migration. */
const next: Version = { ...current, imageTag: 'next' }

let last: Version

beforeAll(async () => {
  last = await findLastRelease()
  await ensureRelease()
}, INSTALL_MS_MAX)

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

/** The image of the create pods. */
async function createImage(): Promise<string | undefined> {
  const named = ['deployment', `${FULL_NAME}-create`, '--namespace', RELEASE]
  const { spec } = await getObject<{
    spec: { template: { spec: { containers: readonly { readonly image: string }[] } } }
  }>(...named)
  return spec.template.spec.containers[0]?.image
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
    await installVersion(3, last)
    expect(await codeSecret()).toEqual(secret)
    const response = await fetch(`${await edgeUrl()}/${code}`, { redirect: 'manual' })
    expect(response.headers.get('Location')).toBe('https://example.com/stays')
    // Ready means that the first request succeeds, even after a negative DNS response was cached.
    await createLink(await edgeUrl(), 'https://example.com/first')
  },
  2 * INSTALL_MS_MAX,
)

test(
  'an upgrade from the last release and its rollback: no request fails, no link is lost',
  async () => {
    const edge = await edgeUrl()
    const [pod = ''] = await addressesOf('create')
    const links: KnownLink[] = [...(await fillLinks(`http://${pod}:8080`, LINKS))]
    const steps: readonly (readonly [string, Version, () => Promise<void>])[] = [
      ['upgrade', next, () => installVersion(3, next)],
      ['rollback', last, () => rollBack(3)],
      ['second upgrade', current, () => installVersion(3, current)],
    ]
    for (const [what, { imageTag }, act] of steps) {
      const plans = [redirects(edge, links[0]?.code ?? ''), creates(edge, links)]
      await underLoad(what, plans, async () => {
        await act()
        // Helm 3 does not wait until all pods are replaced.
        await waitForAllReady()
      })
      expect([what, await createImage()]).toEqual([what, `localhost/curtail:${imageTag}`])
      await checkLinks(edge, links)
    }
  },
  3 * INSTALL_MS_MAX,
)
