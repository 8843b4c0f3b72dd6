// Runs the contract on the fake API server and on a real one.
import { jest } from '@jest/globals'
import type { KubeApi } from '../../src/kube/api.ts'
import { CODE_POOLS } from '../../src/kube/code-pool/code-pool.ts'
import { pathOf } from '../../src/kube/objects.ts'
import { startKubeApiserver } from '../dependencies/kube-apiserver.ts'
import { applyCrd, CODE_POOLS_CRD } from '../kit/kube/apply-crd.ts'
import { startFakeKubeApi } from '../kit/kube/fake-kube-api.ts'
import { callFake, WIDGETS } from '../kit/kube/kube-watcher.ts'
import { defineKubeApiTests, type KubeApiCase } from './kube-api.ts'
import { openDependencies } from './open-dependencies.ts'

/** Kubernetes may have to be built. */
const SETUP_MS_MAX = 40 * 60_000

const WIDGETS_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${WIDGETS.plural}.${WIDGETS.group}` },
  spec: {
    group: WIDGETS.group,
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: WIDGETS.plural, singular: 'widget' },
    versions: [
      {
        ...{ name: WIDGETS.version, served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object' } },
      },
    ],
  },
}

/** The continue token of a list of one CodePool of two. */
async function continueToken(api: KubeApi, namespace: string): Promise<string> {
  const path = pathOf(CODE_POOLS, { namespace })
  const list = await api.call({ method: 'GET', path, query: { limit: '1' } })
  return (list as { metadata: { continue: string } }).metadata.continue
}

const servers: readonly KubeApiCase[] = [
  {
    name: 'fake',
    open: () =>
      openDependencies(async (onClose) => {
        const fake = await startFakeKubeApi()
        onClose(() => fake.stop())
        const { api, close } = callFake(fake)
        onClose(close)
        fake.missingKinds.add(WIDGETS.plural)
        for (const name of ['a', 'b'])
          fake.store.create(pathOf(CODE_POOLS, { namespace: 'n' }), { metadata: { name } })
        const token = await continueToken(api, 'n')
        fake.store.create(pathOf(CODE_POOLS, { namespace: 'n' }), { metadata: { name: 'c' } })
        fake.store.compact()
        return {
          api,
          createNamespace: () => Promise.resolve(),
          serveWidgets: () => {
            fake.missingKinds.delete(WIDGETS.plural)
            return Promise.resolve()
          },
          expired: { version: '1', continue: token },
        }
      }),
  },
  {
    name: 'kube-apiserver',
    open: () =>
      openDependencies(async (onClose) => {
        const server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
        onClose(() => server.stop())
        const api = server.as('admin')
        const createNamespace = async (name: string) => {
          const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
          await api.call({ method: 'POST', path: '/api/v1/namespaces', body })
        }
        await createNamespace('n')
        await applyCrd(api, CODE_POOLS_CRD)
        await server.compact()
        // The server caches recent lists, so only a token of an older version has expired.
        const token = { v: 'meta.k8s.io/v1', rv: 1, start: 'n/a\u0000' }
        return {
          api,
          createNamespace,
          serveWidgets: () => applyCrd(api, WIDGETS_CRD),
          expired: {
            version: '1',
            continue: Buffer.from(JSON.stringify(token)).toString('base64url'),
          },
        }
      }),
  },
]

jest.setTimeout(SETUP_MS_MAX)
servers.forEach(defineKubeApiTests)
