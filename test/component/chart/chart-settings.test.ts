// The settings of the roles that the chart starts: it sets every required setting and no unknown
// one, with values that the role accepts, and mounts every file that a setting names.
import { beforeAll, expect, test } from '@jest/globals'
import type { Role } from '../../../src/process/role.ts'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  type Container,
  containersOf,
  type FoundPod,
  type KubeObject,
  podsOf,
  renderChart,
} from '../../kit/chart/chart-render.ts'

/** A container that runs a role of Curtail. */
interface Ours {
  /** Case, object and container. */
  readonly where: string
  readonly role: string
  readonly pod: FoundPod
  /** All objects of the case. */
  readonly objects: readonly KubeObject[]
  readonly container: Container
  readonly settings: Role['settings']
}

const ours: Ours[] = []
const roles = new Map<string, Role>()

beforeAll(async () => {
  for (const [name, options] of Object.entries(chartCases)) {
    const objects = await renderChart({ major: 4, ...options })
    for (const pod of podsOf(objects)) await collect(name, objects, pod)
  }
}, 180_000)

async function collect(name: string, objects: readonly KubeObject[], pod: FoundPod): Promise<void> {
  for (const container of containersOf(pod)) {
    const [node, ...words] = container.command ?? []
    const [main, role] = words.filter((word) => !word.startsWith('--m'))
    if (node !== '/nodejs/bin/node') continue
    const where = `${name}: ${pod.of.metadata.name}/${container.name}`
    expect([where, main]).toEqual([where, '/app/main.js'])
    const { settings } = await loadRole(role ?? '')
    ours.push({ where, role: role ?? '', pod, objects, container, settings })
  }
}

async function loadRole(name: string): Promise<Role> {
  const loaded = roles.get(name)
  if (loaded !== undefined) return loaded
  const { role } = (await import(`../../../src/roles/${name}.ts`)) as { role: Role }
  roles.set(name, role)
  return role
}

/** The setting of a variable, and whether it contains a path; undefined for an unknown variable. */
function settingOf(variable: string, settings: Role['settings']) {
  const plain = settings[variable]
  if (plain !== undefined) return { setting: plain, isFile: false }
  const base = settings[variable.replace(/_FILE$/, '')]
  return base?.secret === true ? { setting: base, isFile: true } : undefined
}

/** Settings whose value is a path. */
const filesByName = new RegExp(
  [
    /^(CASSANDRA|REDIS)_TLS_(CA|CERT|KEY|CACERT|CLIENT_\w+)$/.source,
    /^CONFIG_GRPC_XDS_(SERVER_TLS_CACERT|CLIENT_TLS_(CERT|KEY))$/.source,
    /^(CODE_SECRET_FILE|REFILL_POD_TEMPLATE)$/.source,
  ].join('|'),
)

test('the chart starts every role', () => {
  const started = [...new Set(ours.map(({ role }) => role))].sort()
  expect(started).toEqual([
    'controller',
    'create',
    'drain',
    'migrate',
    'ratelimit',
    'ratelimit-check',
    'redirect',
    'refill',
    'smoke',
    'wait-for-codes',
  ])
})

test('the chart sets only variables that are settings of the role', () => {
  const unknown = ours.flatMap(({ where, container, settings }) =>
    (container.env ?? [])
      .filter(({ name }) => settingOf(name, settings) === undefined && !name.startsWith('OTEL_'))
      .map(({ name }) => `${where}: ${name}`),
  )
  expect(unknown).toEqual([])
})

test('the chart sets every required setting of a role once', () => {
  const faults = ours.flatMap(({ where, container, settings }) => {
    const given = (container.env ?? []).map(({ name }) => name)
    const twice = given.filter((name, at) => given.indexOf(name) !== at)
    const missing = Object.entries(settings).flatMap(([name, setting]) => {
      const isGiven = given.includes(name) || given.includes(`${name}_FILE`)
      return isGiven || setting.schema.safeParse(undefined).success ? [] : [name]
    })
    return [...twice, ...missing].map((name) => `${where}: ${name}`)
  })
  expect(faults).toEqual([])
})

test('the chart sets only values that the role accepts', () => {
  const rejected = ours.flatMap(({ where, container, settings }) =>
    (container.env ?? []).flatMap(({ name, value }) => {
      const found = settingOf(name, settings)
      if (found === undefined || found.isFile || value === undefined || value === '') return []
      if (filesByName.test(name) || found.setting.schema.safeParse(value).success) return []
      return [`${where}: ${name}=${value}, which must be ${found.setting.allowed}`]
    }),
  )
  expect(rejected).toEqual([])
})

test('the chart mounts every file that a variable names from a Secret or a ConfigMap', () => {
  let files = 0
  const missing = ours.flatMap((one) =>
    (one.container.env ?? []).flatMap(({ name, value = '' }) => {
      const { where, settings } = one
      const isFile = settingOf(name, settings)?.isFile === true || filesByName.test(name)
      if (!isFile) return []
      files++
      return isMounted(value, one) ? [] : [`${where}: ${name}=${value}`]
    }),
  )
  expect(missing).toEqual([])
  expect(files).toBeGreaterThan(50)
})

function isMounted(path: string, { container, pod, objects }: Ours): boolean {
  return (container.volumeMounts ?? []).some(({ name, mountPath }) => {
    const volume = pod.spec.volumes?.find((one) => one.name === name)
    const ofSecret = (volume?.secret?.items ?? []).map((item) => item.path)
    const map = objects.find(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === volume?.configMap?.name,
    )
    const files = [...ofSecret, ...Object.keys(map?.data ?? {})]
    return files.some((file) => `${mountPath}/${file}` === path)
  })
}

test('the chart sets passwords only from Secrets', () => {
  const exposed = ours.flatMap(({ where, container }) =>
    (container.env ?? [])
      .filter(({ name, value }) => /PASSWORD|_AUTH|TOKEN/.test(name) && value !== undefined)
      .filter(({ name }) => !name.endsWith('_FILE'))
      .map(({ name }) => `${where}: ${name}`),
  )
  expect(exposed).toEqual([])
})

test('the chart declares exactly the ports that a role opens', () => {
  const ports: Readonly<Record<string, readonly string[]>> = {
    create: ['PORT=8080', 'ADMIN_PORT=9090'],
    redirect: ['PORT=8080', 'ADMIN_PORT=9090'],
    ratelimit: ['GRPC_PORT=8081', 'PORT=8080', 'DEBUG_PORT=6070', 'ADMIN_PORT=9090'],
    drain: ['DRAIN_PORT=8099'],
    controller: ['ADMIN_PORT=9090'],
  }
  for (const { where, role, container } of ours) {
    const given = (container.env ?? []).map(({ name, value = '' }) => `${name}=${value}`)
    for (const port of ports[role] ?? []) {
      expect([where, given]).toEqual([where, expect.arrayContaining([port])])
    }
    const ads = given.filter((one) => one.startsWith('ADS_PORT='))
    const opened = [...(ports[role] ?? []), ...ads].map((port) => Number(port.split('=')[1])).sort()
    const declared = (container.ports ?? []).map(({ containerPort }) => containerPort).sort()
    expect([where, declared]).toEqual([where, opened])
  }
})
