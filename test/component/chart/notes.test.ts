// The notes of the charts for the values that change them: a shell parses each command, and every
// object that they name is rendered. The cluster tests run the commands.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from '@jest/globals'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import { containersOf, type KubeObject, podsOf } from '../../kit/chart/chart-render.ts'
import {
  commandsOf,
  type Installation,
  renderInstallation,
  valuesOf,
} from '../../kit/chart/notes.ts'

const run = promisify(execFile)
const RENDER_MS_MAX = 120_000
const SHELL_MS_MAX = 10_000

const names = [
  ...['default', 'k8ssandra', 'external stores with secrets and TLS', 'limits in a file'],
  ...['a load balancer with the PROXY protocol', 'behind a proxy, by a port of the nodes'],
  ...['behind a gateway, with its certificate', 'lists in further objects'],
  ...['in other namespaces, with Roles of an administrator', 'pools filled by CronJobs'],
  ...['pools of several namespaces and clusters', 'pools filled by another process'],
  ...['the user’s own secrets and rules', 'the user’s own labels and objects'],
  ...[
    'the rate limiter alone',
    'the rate limiter alone, with its own rules, one pod and no policies',
  ],
  'the rate limiter alone, with rules by xDS and an external Redis',
]
const installations = new Map<string, Installation>()

beforeAll(async () => {
  const queue = names.values()
  const work = async () => {
    for (const name of queue) {
      installations.set(name, await renderInstallation(chartCases[name] ?? {}))
    }
  }
  await Promise.all([work(), work()])
}, RENDER_MS_MAX)

/** Throws if the case has no such installation. */
function installationOf(name: string): Installation {
  const installation = installations.get(name)
  if (installation === undefined) throw new Error(`${name} was not rendered`)
  return installation
}

test.each(names)(
  'a shell parses each command; only addresses are no commands: %s',
  async (name) => {
    const { notes } = installationOf(name)
    const commands = commandsOf(notes)
    expect(commands.length).toBeGreaterThan(4)
    for (const command of commands) {
      await run('bash', ['-n', '-c', command], { timeout: SHELL_MS_MAX })
    }
    expect(
      valuesOf(notes).filter((value) => !/^[a-z-]+\.store\.svc\.[a-z.]+:8081$/.test(value)),
    ).toEqual([])
    expect(notes).not.toMatch(/%!|<nil>|<no value>/)
  },
)

/** The forms of the commands, and what each names. */
const forms: readonly (readonly [RegExp, string])[] = [
  [/^kubectl -n (\S+) port-forward service\/(\S+) \d+:(\d+) &$/, '$1 Service $2:$3'],
  [/^kubectl -n (\S+) port-forward deployment\/(\S+) \d+:(\d+) &$/, '$1 Deployment $2:$3'],
  [/^kubectl -n (\S+) rollout status deployment\/(\S+) --timeout \d+m$/, '$1 Deployment $2'],
  [/^kubectl -n (\S+) wait deployment -l (\S+) --for condition=Available .*$/, '$1 Deployment $2'],
  [
    /^ADMIN_TOKEN=\$\(kubectl -n (\S+) get secret (\S+) -o jsonpath='{\.data\.(\S+)}' .*$/,
    '$1 Secret $2 $3',
  ],
  [/^kubectl -n (\S+) (?:get|describe) codepools$/, '$1 CodePool'],
  [/^kubectl -n (\S+) get ratelimitpolicies$/, '$1 RateLimitPolicy'],
  [/^kubectl -n (\S+) get pods,jobs$/, '$1 Deployment'],
  [/^kubectl -n (\S+) describe pods -l (\S+)$/, '$1 pod $2'],
  [/^kubectl -n (\S+) logs -l (\S+) --tail 50$/, '$1 pod $2'],
  [/^kubectl -n (\S+) logs -l (\S+) -c (\S+) --tail 50$/, '$1 pod $2 $3'],
  [/^helm test shop -n store$/, 'helm test'],
]

const labelsOf = ({ labels = {} }: { readonly labels?: Readonly<Record<string, string>> }) =>
  Object.entries(labels).map(([label, value]) => `${label}=${value}`)

/** What commands may name: the objects by kind, name, label and port, in their namespaces. */
function namedBy(objects: readonly KubeObject[]): ReadonlySet<string> {
  const ofObjects = objects.flatMap(({ kind, metadata, spec }) => {
    const ports = (spec?.['ports'] ?? []) as readonly { readonly port: number }[]
    const { name, annotations } = metadata
    const names = [name, ...labelsOf(metadata), ...ports.map(({ port }) => `${name}:${port}`)]
    const all = [kind, ...names.map((one) => `${kind} ${one}`)]
    const ofHook = annotations?.['helm.sh/hook'] === 'test' ? ['helm test'] : []
    return [...all.map((one) => `${metadata.namespace ?? 'store'} ${one}`), ...ofHook]
  })
  const ofPods = podsOf(objects).flatMap((pod) => {
    const { kind, metadata } = pod.of
    const containers = containersOf(pod)
    const ports = containers.flatMap((one) => (one.ports ?? []).map((port) => port.containerPort))
    const keys = (pod.spec.volumes ?? []).flatMap(({ secret }) =>
      (secret?.items ?? []).map(({ key }) => `Secret ${secret?.secretName ?? ''} ${key}`),
    )
    const labels = labelsOf(pod).flatMap((one) => [
      `pod ${one}`,
      ...containers.map(({ name }) => `pod ${one} ${name}`),
    ])
    const all = [...ports.map((port) => `${kind} ${metadata.name}:${port}`), ...keys, ...labels]
    return all.map((one) => `${metadata.namespace ?? 'store'} ${one}`)
  })
  return new Set([...ofObjects, ...ofPods])
}

test.each(names)('the commands name rendered objects and their ports: %s', (name) => {
  const { notes, objects } = installationOf(name)
  const named = namedBy(objects)
  const missing = commandsOf(notes).flatMap((command) => {
    if (/^(curl|SHORT_URL=\$\(curl) /.test(command)) return []
    const [form, template = ''] = forms.find(([one]) => one.test(command)) ?? []
    if (form === undefined) return [`a command of an unknown form: ${command}`]
    const reference = command.replace(form, template)
    return named.has(reference) ? [] : [`${reference}: ${command}`]
  })
  expect(missing).toEqual([])
})

test.each(names)('each local port is forwarded once, before its first use: %s', (name) => {
  const open = new Set<string>()
  for (const command of commandsOf(installationOf(name).notes)) {
    const [, forwarded] = / port-forward \S+ (\d+):/.exec(command) ?? []
    if (forwarded !== undefined) expect(open).not.toContain(forwarded)
    if (forwarded !== undefined) open.add(forwarded)
    const [, used] = /http:\/\/localhost:(\d+)\//.exec(command) ?? []
    if (used !== undefined) expect(open).toContain(used)
  }
})

/** The objects that `helm uninstall` keeps, as `kind name`. */
function keptOf(objects: readonly KubeObject[]): readonly string[] {
  const kept = objects.filter(
    ({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'] === 'keep',
  )
  // Rendered only in a cluster, but mounted by the pods of refills.
  const codeSecrets = [...namedBy(objects)].flatMap(
    (reference) => / (Secret [\w-]+-code-secret) /.exec(reference)?.[1] ?? [],
  )
  const claims = objects.filter(({ kind, spec }) => {
    return kind === 'StatefulSet' && spec?.['volumeClaimTemplates'] !== undefined
  })
  return [
    ...kept.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ...new Set(codeSecrets),
    ...claims.map(({ metadata }) => `claims data-${metadata.name}-`),
  ]
}

test.each(names)('the notes list exactly the objects that an uninstall keeps: %s', (name) => {
  const { notes, objects } = installationOf(name)
  const kept = /\bthe (?:volume )?((?:Secret|ConfigMap|CassandraDatacenter|claims) [\w-]+)/g
  const listed = [...notes.matchAll(kept)].map(([, object = '']) => object)
  expect(listed.sort()).toEqual([...keptOf(objects)].sort())
})
