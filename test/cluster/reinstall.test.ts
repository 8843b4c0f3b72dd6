// The end of a release and the next one of its name: nothing stays but what the chart says it
// keeps, and links and the secret of codes are found again. By Helm 3, the others being by Helm 4.
import { beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../component/wait-for.ts'
import { getObject, kubectl } from './cluster.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  RELEASE,
  shorten,
  uninstall,
} from './release.ts'

const GONE_MS_MAX = 120_000

beforeAll(() => ensureRelease(), INSTALL_MS_MAX)

/** Every object of the namespace that a cluster does not make by itself. */
async function objectsThere(): Promise<readonly string[]> {
  const kinds = await kubectl('api-resources', '--namespaced', '--verbs=list', '-o', 'name')
  const asked = kinds
    .trim()
    .split('\n')
    .filter((kind) => !/^events|^pods\.metrics/.test(kind))
  const told = await kubectl('get', asked.join(','), '--namespace', RELEASE, '-o', 'name')
  const own = /^(configmap\/kube-root-ca\.crt|serviceaccount\/default)$/
  return told
    .trim()
    .split('\n')
    .filter((name) => name !== '' && !own.test(name))
    .sort()
}

async function secretOf(): Promise<unknown> {
  const named = ['secret', `${FULL_NAME}-code-secret`, '--namespace', RELEASE]
  return (await getObject<{ data: unknown }>(...named)).data
}

test(
  'uninstalling leaves the claim, the secret and the Lease; installing again finds the links',
  async () => {
    const code = await shorten(await edgeUrl(), 'https://example.com/stays')
    const secret = await secretOf()
    await uninstall()
    const kept = [
      // Made by whoever led; the next one takes it.
      'lease.coordination.k8s.io/curtail-controller',
      `persistentvolumeclaim/data-${FULL_NAME}-cassandra-0`,
      `secret/${FULL_NAME}-code-secret`,
    ]
    // helm does not wait for pods that are on their way out.
    const isPod = (name: string) => name.startsWith('pod/')
    await waitFor(
      'the pods to be gone',
      async () => !(await objectsThere()).some(isPod),
      GONE_MS_MAX,
    )
    expect(await objectsThere()).toEqual(kept)
    await ensureRelease(3)
    expect(await secretOf()).toEqual(secret)
    const followed = await fetch(`${await edgeUrl()}/${code}`, { redirect: 'manual' })
    expect(followed.headers.get('Location')).toBe('https://example.com/stays')
    // Ready means that the first request works, also where DNS had just said that there is no pod.
    await shorten(await edgeUrl(), 'https://example.com/first')
  },
  2 * INSTALL_MS_MAX,
)
