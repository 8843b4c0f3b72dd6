// The manifests of the charts for every toggle and both major versions of Helm, without a cluster.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { findCrdSchemas } from '../../dependencies/crd-schemas.ts'
import { findHelm, helmMajors } from '../../dependencies/helm.ts'
import { findKubeconform } from '../../dependencies/kubeconform.ts'
import { findKubernetesSchemas, schemaLocation } from '../../dependencies/kubernetes-schemas.ts'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  containersOf,
  type KubeObject,
  objectOf,
  podsOf,
  parseObjects,
  renderChart,
  renderManifests,
} from '../../kit/chart/chart-render.ts'
import { type Advice, adviceOn, exceptionsTo, scoreExceptions } from '../../kit/chart/kube-score.ts'
import { writeCustomSchemas } from '../../kit/kube/custom-schemas.ts'
import { sumRequests } from '../../kit/kube/kube-quantity.ts'

const run = promisify(execFile)
const names = Object.keys(chartCases)
/** The cases without values against which kube-score advises, such as one pod of each. */
const scoredCases = [
  ...['default', 'production', 'staging', 'external stores with secrets and TLS'],
  ...['behind a gateway, with its certificate', 'behind a proxy, by a port of the nodes'],
  ...['a load balancer with the PROXY protocol', 'TLS at the edge', 'autoscaled', 'a load test'],
  ...['pools filled by CronJobs', 'in other namespaces, with Roles of an administrator'],
  ...['pods watched by Prometheus', 'the rate limiter alone'],
]

/** The manifests of every case, by `major case`. */
const manifests = new Map<string, string>()
let folder = ''

beforeAll(async () => {
  for (const major of helmMajors) await findHelm(major)
  folder = await mkdtemp(join(tmpdir(), 'curtail-chart-'))
  for (const name of names) {
    const options = { ...chartCases[name] }
    const both = await Promise.all(
      helmMajors.map((major) => renderManifests({ major, ...options })),
    )
    helmMajors.forEach((major, at) => manifests.set(`${major} ${name}`, both[at] ?? ''))
  }
}, 180_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** The parsed manifests of Helm 4: parsing takes longer than rendering. */
const parsed = new Map<string, readonly KubeObject[]>()

function objectsOf(name: string): readonly KubeObject[] {
  const objects = parsed.get(name) ?? parseObjects(manifests.get(`4 ${name}`) ?? '')
  parsed.set(name, objects)
  return objects
}

/** The problems that `find` reports in any case, prefixed with the case's name. */
function faultsOf(find: (objects: readonly KubeObject[]) => readonly string[]): string[] {
  return names.flatMap((name) => find(objectsOf(name)).map((fault) => `${name}: ${fault}`))
}

/** Names of Services and Jobs are labels too; a CronJob appends eleven characters for its Jobs. */
function isNamedTooLong({ kind, metadata }: KubeObject): boolean {
  return metadata.name.length > (kind === 'CronJob' ? 52 : 63)
}

describe('the chart', () => {
  test.each(names)('renders the same objects with Helm 3 and Helm 4: %s', (name) => {
    const three = parseObjects(manifests.get(`3 ${name}`) ?? '')
    const four = objectsOf(name)
    expect(four.length).toBeGreaterThan(chartCases[name]?.chart === undefined ? 25 : 4)
    expect(four).toEqual(three)
  })

  test('renders only objects that are valid for the Kubernetes API', async () => {
    for (const [name, yaml] of manifests) {
      const file = `${name.replaceAll(/[^\w]+/g, '-')}.yaml`
      if (name.startsWith('4')) await writeFile(join(folder, file), yaml)
    }
    const custom = await mkdtemp(join(tmpdir(), 'curtail-schemas-'))
    await writeCustomSchemas(custom)
    const schemas = [await findKubernetesSchemas(), await findCrdSchemas(), custom]
    const locations = schemas.flatMap((one) => ['-schema-location', schemaLocation(one)])
    const args = ['-strict', '-summary', '-skip', 'CassandraDatacenter', ...locations, folder]
    const bounds = { maxBuffer: 8 * 1024 * 1024 }
    const stdout = await run(await findKubeconform(), args, bounds).then(
      (result) => result.stdout,
      (error: unknown) => (error as { stdout: string }).stdout,
    )
    await rm(custom, { recursive: true })
    expect(stdout).toMatch(/Invalid: 0, Errors: 0/)
    expect(stdout).toMatch(/Valid: \d{3,}/)
  }, 180_000)

  test('renders objects to which the advice of kube-score does not apply', async () => {
    const advice: Advice[] = []
    for (const name of scoredCases) advice.push(...(await adviceOn(objectsOf(name))))
    expect(advice.filter((one) => exceptionsTo(one).length === 0)).toEqual([])
    const occurring = new Set(advice.flatMap(exceptionsTo))
    expect(scoreExceptions.filter((one) => !occurring.has(one))).toEqual([])
  }, 180_000)

  test('renders unique object names of valid length', () => {
    const found = faultsOf((objects) => {
      const keys = objects.map(({ kind, metadata }) =>
        [kind, metadata.namespace ?? '', metadata.name].join(' '),
      )
      const twice = keys.filter((key, at) => keys.indexOf(key) !== at)
      const tooLong = objects.filter(isNamedTooLong)
      return [...twice, ...tooLong.map(({ metadata }) => metadata.name)]
    })
    expect(found).toEqual([])
  })

  test('renders object names of valid length with a long release name', async () => {
    const release = `release-${'x'.repeat(45)}`
    const { values = {} } = chartCases['several pools'] ?? {}
    const objects = await renderChart({ major: 4, release, values })
    expect(objects.filter(isNamedTooLong).map(({ metadata }) => metadata.name)).toEqual([])
  })
})

describe('a rendering without a cluster', () => {
  test('is reproducible, and generates no data of a Secret', async () => {
    for (const major of helmMajors) {
      const second = await renderManifests({ major })
      expect(second).toBe(manifests.get(`${major} default`))
      const secrets = parseObjects(second).filter(({ kind }) => kind === 'Secret')
      expect(secrets.filter(({ data }) => data !== undefined)).toEqual([])
    }
  })
})

describe('every pod', () => {
  test('complies with the restricted Pod Security Standard', () => {
    const found = faultsOf((objects) =>
      podsOf(objects).flatMap((pod) => {
        const { runAsNonRoot, seccompProfile } = pod.spec.securityContext ?? {}
        const isRestricted =
          runAsNonRoot === true &&
          (seccompProfile as { type?: string } | undefined)?.type === 'RuntimeDefault'
        const open = containersOf(pod).filter(({ securityContext = {} }) => {
          const { drop } = (securityContext['capabilities'] ?? {}) as { drop?: string[] }
          return !(
            securityContext['allowPrivilegeEscalation'] === false &&
            securityContext['readOnlyRootFilesystem'] === true &&
            drop?.join() === 'ALL'
          )
        })
        const faults = open.map(({ name }) => `${pod.of.metadata.name}/${name} is not restricted`)
        return isRestricted ? faults : [...faults, `${pod.of.metadata.name} is not restricted`]
      }),
    )
    expect(found).toEqual([])
  })

  test('has its own ServiceAccount, whose token only the controller mounts', () => {
    const keyOf = (namespace = '', name = '') => `${namespace}/${name}`
    const found = faultsOf((objects) => {
      const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount')
      const accountKeys = accounts.map(({ metadata }) => keyOf(metadata.namespace, metadata.name))
      return podsOf(objects).flatMap(({ of, labels, spec }) => {
        const exists = accountKeys.includes(keyOf(of.metadata.namespace, spec.serviceAccountName))
        const isController = labels['app.kubernetes.io/component'] === 'controller'
        const isValid = exists && spec.automountServiceAccountToken === isController
        return isValid ? [] : [of.metadata.name]
      })
    })
    expect(found).toEqual([])
  })

  test('sets a command, a CPU request and a memory request for every container', () => {
    const found = faultsOf((objects) =>
      podsOf(objects).flatMap((pod) =>
        containersOf(pod).flatMap(({ name, command = [], resources }) => {
          const { cpu, memory } = resources?.requests ?? {}
          const isComplete = command.length > 0 && cpu !== undefined && memory !== undefined
          return isComplete ? [] : [`${pod.of.metadata.name}/${name}`]
        }),
      ),
    )
    expect(found).toEqual([])
  })

  test('mounts only existing volumes, and without subPath, which prevents updates', () => {
    const found = faultsOf((objects) =>
      podsOf(objects).flatMap((pod) => {
        const claims = (pod.of.spec?.['volumeClaimTemplates'] ?? []) as KubeObject[]
        const volumes = [...(pod.spec.volumes ?? []), ...claims.map(({ metadata }) => metadata)]
        const volumeNames = new Set(volumes.map(({ name }) => name))
        return containersOf(pod).flatMap(({ name, volumeMounts = [] }) =>
          volumeMounts
            .filter((mount) => !volumeNames.has(mount.name) || mount.subPath !== undefined)
            .map((mount) => `${pod.of.metadata.name}/${name}: ${mount.name}`),
        )
      }),
    )
    expect(found).toEqual([])
  })

  test('is selected by exactly one NetworkPolicy, if policies are enabled', () => {
    const found = faultsOf((objects) => {
      const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy')
      if (policies.length === 0) return []
      return podsOf(objects).flatMap(({ of, labels }) => {
        const selecting = policies.filter(({ metadata, spec }) => {
          if (metadata.namespace !== of.metadata.namespace) return false
          const { matchLabels } = spec?.['podSelector'] as { matchLabels: Record<string, string> }
          return Object.entries(matchLabels).every(([key, value]) => labels[key] === value)
        })
        return selecting.length === 1 ? [] : [`${of.metadata.name} by ${selecting.length}`]
      })
    })
    expect(found).toEqual([])
  })

  test('has a grace period longer than its preStop hook and its drain', () => {
    const found = faultsOf((objects) =>
      podsOf(objects).flatMap(({ of, spec }) => {
        const [first] = spec.containers as readonly {
          lifecycle?: { preStop: { sleep?: { seconds: number } } }
        }[]
        const seconds = first?.lifecycle?.preStop.sleep?.seconds
        const drainSeconds = 15
        const isLong = (spec.terminationGracePeriodSeconds ?? 0) > (seconds ?? 0) + drainSeconds
        return seconds === undefined || isLong ? [] : [of.metadata.name]
      }),
    )
    expect(found).toEqual([])
  })
})

test('the default values request at most 1.2 CPU and 3 GiB, with Jobs and the Helm test', () => {
  const { cpu, memoryBytes } = sumRequests(objectsOf('default'))
  expect(cpu).toBeLessThanOrEqual(1.2)
  expect(cpu).toBeGreaterThan(0.5)
  expect(memoryBytes).toBeLessThanOrEqual(3 * 1024 ** 3)
  expect(memoryBytes).toBeGreaterThan(1024 ** 3)
})

describe('a rollout', () => {
  const templateOf = (objects: readonly KubeObject[], name: string) =>
    objectOf(objects, 'Deployment', name).spec?.['template']

  test('is not triggered by new rules, which the running service reloads', async () => {
    const rules = 'domain: edge\ndescriptors: []\n'
    const objects = await renderChart({ major: 4, values: { ratelimit: { rules } } })
    const name = 'shop-curtail-ratelimit'
    expect(templateOf(objects, name)).toEqual(templateOf(objectsOf('limits in a file'), name))
    const limits = { createBurst: 21 }
    const changed = await renderChart({ major: 4, values: { ratelimit: { limits } } })
    expect(templateOf(changed, name)).toEqual(templateOf(objectsOf('default'), name))
    expect(objectOf(objects, 'ConfigMap', name).data).toEqual({ 'rate-limits.yaml': rules })
  })

  test('is triggered by another bootstrap of Envoy', async () => {
    const objects = await renderChart({ major: 4, values: { edge: { idleTimeout: '10s' } } })
    const name = 'shop-curtail-edge'
    expect(templateOf(objects, name)).not.toEqual(templateOf(objectsOf('default'), name))
  })

  test('renames a changed Job, because Jobs are immutable', async () => {
    const jobsOf = async (tag: string) => {
      const image = { repository: 'registry.example.com/curtail', tag }
      const objects = await renderChart({ major: 4, values: { image, pools: { mode: 'cron' } } })
      return objects.filter(({ kind }) => kind === 'Job').map(({ metadata }) => metadata.name)
    }
    const [before, after] = await Promise.all(['this', 'next'].map(jobsOf))
    expect(before).toHaveLength(2)
    expect(after).toHaveLength(2)
    expect(after?.filter((name) => before?.includes(name))).toEqual([])
  })
})
