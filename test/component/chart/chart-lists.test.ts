// The operator lists in the chart: objects without data, which upgrades and an uninstall keep;
// folders that contain one file of each object; and the names that the controller gets.
import { describe, expect, test } from '@jest/globals'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  type Container,
  type FoundPod,
  type KubeObject,
  objectOf,
  podsOf,
  renderChart,
} from '../../kit/chart/chart-render.ts'

const KEYS = 'shop-curtail-api-keys'
const BLOCKED = 'shop-curtail-blocked-targets'
const FURTHER = 'lists in further objects'

const caseOf = (name: string) => renderChart({ major: 4, ...chartCases[name] })

function podOf(objects: readonly KubeObject[], component: string) {
  const found = podsOf(objects).find(({ of }) => of.metadata.name === `shop-curtail-${component}`)
  const [container] = found?.spec.containers ?? []
  if (found === undefined || container === undefined) throw new Error(`no ${component} is rendered`)
  return { pod: found, container }
}

const valueOf = ({ env = [] }: Container, name: string) =>
  env.find((one) => one.name === name)?.value

interface Source {
  readonly name: string
  readonly optional: boolean
  readonly items: readonly { readonly key: string; readonly path: string }[]
}

/** The files of a folder that a container mounts: `kind/object/key as path`. */
function filesIn(pod: FoundPod, { volumeMounts = [] }: Container, folder: string) {
  const mount = volumeMounts.find(({ mountPath }) => mountPath === folder)
  const volumes = (pod.spec.volumes ?? []) as readonly {
    name: string
    projected?: {
      readonly defaultMode: number
      readonly sources: readonly { readonly secret?: Source; readonly configMap?: Source }[]
    }
  }[]
  const { projected } = volumes.find(({ name }) => name === mount?.name) ?? {}
  expect(projected?.defaultMode).toBe(0o440)
  return (projected?.sources ?? []).flatMap(({ secret, configMap }) => {
    const { name = '', optional, items = [] } = secret ?? configMap ?? {}
    expect(optional).toBe(true)
    const kind = secret === undefined ? 'configMap' : 'secret'
    return items.map(({ key, path }) => `${kind}/${name}/${key} as ${path}`)
  })
}

const keyFile = (name: string) => `secret/${name}/api-keys.ndjson as ${name}.ndjson`
const blockedFile = (name: string) => `configMap/${name}/blocked-targets.txt as ${name}.txt`

describe('the objects of the chart', () => {
  test.each(['default', 'pools filled by CronJobs'])(
    'have no data, and helm uninstall keeps them: %s',
    async (name) => {
      const objects = await caseOf(name)
      for (const object of [
        objectOf(objects, 'Secret', KEYS),
        objectOf(objects, 'ConfigMap', BLOCKED),
      ]) {
        expect(object).not.toHaveProperty('data')
        expect(object).not.toHaveProperty('stringData')
        expect(object.metadata.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' })
      }
    },
  )

  test('may be referenced by RateLimitPolicies, if they contain API keys', async () => {
    const { metadata } = objectOf(await caseOf('default'), 'Secret', KEYS)
    expect(metadata.labels).toMatchObject({ 'curtail.dev/api-keys': 'true' })
  })
})

test('create pods mount the API keys and the blocked targets', async () => {
  const { pod, container } = podOf(await caseOf(FURTHER), 'create')
  const keys = valueOf(container, 'API_KEYS') ?? ''
  expect(filesIn(pod, container, keys)).toEqual([KEYS, 'partners', 'team.keys'].map(keyFile))
  expect(valueOf(container, 'API_KEY_REQUIRED')).toBe('true')
  const blocked = valueOf(container, 'BLOCKED_TARGETS') ?? ''
  expect(filesIn(pod, container, blocked)).toEqual([BLOCKED, 'feed-1', 'feed-2'].map(blockedFile))
})

test('redirect pods mount the blocked targets, and no API keys', async () => {
  const { pod, container } = podOf(await caseOf(FURTHER), 'redirect')
  const blocked = valueOf(container, 'BLOCKED_TARGETS') ?? ''
  expect(filesIn(pod, container, blocked)).toEqual([BLOCKED, 'feed-1', 'feed-2'].map(blockedFile))
  expect(valueOf(container, 'BLOCKED_STATUS')).toBe('451')
  expect(JSON.stringify(pod.spec)).not.toContain('api-keys')
})

test('by default a key is not required, and a blocked target is not found', async () => {
  const objects = await caseOf('default')
  expect(valueOf(podOf(objects, 'create').container, 'API_KEY_REQUIRED')).toBe('false')
  expect(valueOf(podOf(objects, 'redirect').container, 'BLOCKED_STATUS')).toBe('404')
})

test('the test of the release mounts its API key', async () => {
  const { pod, container } = podOf(await caseOf(FURTHER), 'test')
  expect(valueOf(container, 'SMOKE_API_KEY_FILE')).toBe('/etc/curtail/api-key/key')
  const items = [{ key: 'value', path: 'key' }]
  expect(pod.spec.volumes).toContainEqual({
    name: 'api-key',
    secret: { secretName: 'test-key', defaultMode: 0o440, items },
  })
  const { container: without } = podOf(await caseOf('default'), 'test')
  expect(valueOf(without, 'SMOKE_API_KEY_FILE')).toBeUndefined()
})

test('the controller gets the names of all objects, and selects exactly the pods', async () => {
  const objects = await caseOf(FURTHER)
  const { container } = podOf(objects, 'controller')
  expect(valueOf(container, 'API_KEYS_SECRET')).toBe(`${KEYS},partners,team.keys`)
  expect(valueOf(container, 'BLOCKED_TARGETS_CONFIG_MAPS')).toBe(`${BLOCKED},feed-1,feed-2`)
  const selector = valueOf(container, 'LIST_PODS_SELECTOR') ?? ''
  const requirements = [...selector.matchAll(/([\w./-]+)(?:=([\w-]+)| in \(([\w,-]+)\))/g)]
  expect(requirements).toHaveLength(3)
  const selected = podsOf(objects).filter(({ labels }) =>
    requirements.every(([, key = '', value, values = '']) =>
      value === undefined ? values.split(',').includes(labels[key] ?? '') : labels[key] === value,
    ),
  )
  const mounting = podsOf(objects).filter(({ spec }) =>
    (spec.volumes ?? []).some(({ name }) => ['api-keys', 'blocked-targets'].includes(name)),
  )
  const namesOf = (pods: readonly FoundPod[]) => pods.map(({ of }) => of.metadata.name).sort()
  expect(namesOf(selected)).toEqual(['shop-curtail-create', 'shop-curtail-redirect'])
  expect(namesOf(mounting)).toEqual(namesOf(selected))
})
