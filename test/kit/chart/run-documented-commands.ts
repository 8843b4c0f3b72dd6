// Runs the documented commands that write on a release, each followed by an upgrade. Contains no
// expectation: a command or an upgrade that fails is thrown.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HelmMajor } from '../../dependencies/helm.ts'
import { roleArguments } from '../processes/role-process.ts'
import { chartFolder, someImage } from './chart-render.ts'
import { type HelmShell, UNVALIDATED } from './helm-shell.ts'

/** The release `shop` of the documents, in a namespace with the same name. */
export interface DocumentedRelease {
  readonly shell: HelmShell
  readonly name: string
  readonly major: HelmMajor
}

/** What the commands need that only these values create. */
const CRON = '--set pools.mode=cron --set redirect.autoscaling.enabled=true'
const UNINSTALL = 'uninstall --ignore-not-found'
const needsCron = / job refill-now|scale deploy\/\$R-redirect /

const image = `--set image.repository=${someImage.repository}`
const emptyValues = ['pools.yaml', 'namespaces.yaml', 'values.yaml']
const files = {
  ...Object.fromEntries(emptyValues.map((name) => [name, '{}\n'])),
  ...{ 'my-values.yaml': `image: { repository: ${someImage.repository} }\n`, FILE: 'key' },
  ...{ 'blocked-targets.txt': '# a corrected list\n', 'api-keys.ndjson': '# a corrected list\n' },
  'list.txt': 'listed.example\n',
}

/** Values of the placeholders; patterns in the order of replacement. */
const values: readonly (readonly [RegExp, string])[] = [
  [/ --wait(?= |$)| --timeout 10m/g, ''], // without a node, no pod becomes ready
  [/(?<= delete pod POD) --wait=false/g, ''], // so that all documents delete the one pod once
  [/image\.repository=…/g, image.slice('--set '.length)],
  [/ --namespace /g, ' -n '],
  [/\$R\b/g, 'shop-curtail'],
  [/\$NS\b|\bRELEASE\b|\bNAMESPACE\b|\bnew-namespace\b/g, 'shop'],
  [/-n (curtail-staging|limits)\b/g, '-n shop-$1'],
  [/\/tmp\/limits\/config\/rules\.yaml/g, 'rate-limits.yaml'],
  [/\bCHART\b/g, 'charts/curtail'],
  [/\bREVISION\b/g, '0'], // the previous one
  [/\bCOUNT\b/g, '4'],
  [/\bMEBIBYTES\b/g, '800'],
  [/\bMEMORY\b/g, '128mb'],
  [/\bLIMIT\b/g, '1Gi'],
  [/\bPOD\b/g, 'shop-curtail-cassandra-0'],
  [/\bJOB\b/g, '$(kubectl get job -l app.kubernetes.io/component=migrate -o name | cut -d/ -f2)'],
  [/\bcodepool default\b/g, 'codepool shop-curtail-default'],
  // The Secret of the chart, a copy of it, or a certificate.
  [/\bSECRET(?=.*code-secret --dry-run)/g, 'shop-curtail-code-secret'],
  [/(?<=codeSecret.*)\bSECRET\b|\bSECRET(?=.*code-secret)/g, 'code'],
  [/\bSECRET\b/g, 'tls'],
]

/** Runs the commands, from the installations to the upgrades. */
export async function runDocumentedCommands(
  release: DocumentedRelease,
  commands: readonly string[],
): Promise<void> {
  const fill = (command: string) => fillCommand(command, release)
  const fillAll = (which: (command: string) => boolean) => [
    ...new Set(commands.filter(which).map(fill)),
  ]
  const isInstall = (command: string) => command.startsWith('helm install')
  const isNamespace = (command: string) => command.startsWith('kubectl create namespace')
  const isHelm = (command: string) => command.startsWith('helm') && !isInstall(command)
  const isOther = (command: string) =>
    !(command.startsWith('helm') || isNamespace(command) || needsCron.test(command))

  await prepareFolder(release)
  for (const command of fillAll(isNamespace)) await run(release, command)
  for (const command of fillAll(isInstall).reverse()) {
    await run(release, command.replace(/install (\S+) \S+ (-n \S+).*/, `${UNINSTALL} $1 $2`))
    await run(release, command)
    await run(release, command.replace('helm install', 'helm upgrade'))
  }
  await prepareObjects(release)
  await runInRounds(release, fillAll(isOther))
  const cronCommands = fillAll((command) => needsCron.test(command))
  await upgrade(release, CRON)
  await runInRounds(release, cronCommands, CRON)
  await upgrade(release)
  const helmCommands = fillAll(isHelm)
  for (const [at, command] of helmCommands.entries()) {
    await run(release, command)
    if (!isPlainUpgrade(helmCommands[at + 1] ?? '', release)) await upgrade(release)
  }
}

/** Whether a command is an upgrade without force, and so checks the command before it. */
const isPlainUpgrade = (command: string, { name }: DocumentedRelease) =>
  command.replace(' --install', '').includes(` upgrade ${name} `) &&
  !command.includes('--force-conflicts')

/** Upgrades to the default values, as with an operator's own values file. */
export const upgrade = (release: DocumentedRelease, more = '') =>
  run(release, `helm upgrade ${release.name} charts/curtail -n ${release.name} ${image} ${more}`)

/**
 * Runs commands, each followed by an upgrade. Commands that change different objects share the
 * upgrade, which takes seconds: none of them can revert what another one has broken.
 */
async function runInRounds(
  release: DocumentedRelease,
  commands: readonly string[],
  upgradeValues?: string,
): Promise<void> {
  const rounds: string[][] = []
  const counts = new Map<string, number>()
  for (const command of commands) {
    const names = namesIn(command)
    const round = Math.max(0, ...names.map((name) => counts.get(name) ?? 0))
    for (const name of names) counts.set(name, round + 1)
    rounds[round] = [...(rounds[round] ?? []), command]
  }
  for (const round of rounds) {
    const changed = new Set<string>()
    for (const command of round)
      for (const object of objectsIn(await run(release, command))) {
        if (changed.has(object)) throw new Error(`${command} needs a round of its own: ${object}`)
        changed.add(object)
      }
    await upgrade(release, upgradeValues)
  }
}

/** The names of the objects in a command. */
function namesIn(command: string): readonly string[] {
  const [, list] = /_(?:SECRET|MAPS)=(\S+) .*main\.ts /.exec(command) ?? []
  if (list !== undefined) return [list]
  const kinds = /(?:secret (?:generic|tls)|configmap|job|pod|pvc|codepool) (\S+)|-[fk] (k8s\S+)/g
  const slashed = / (?:deploy|statefulset)\/(\S+)/g
  return [...command.matchAll(kinds), ...command.matchAll(slashed)].map(
    ([, name, path]) => name ?? path ?? '',
  )
}

/** The objects that kubectl reports as changed. */
const objectsIn = (output: string) =>
  output.match(/^[a-z.]+\/\S+(?= [a-z])|^[a-z.]+ "\S+"(?= deleted)/gm) ?? []

/** A command for the release. In a pod, `curtail` has the settings that are set here. */
function fillCommand(command: string, { name, major }: DocumentedRelease): string {
  const filled = values.reduce((line, [what, value]) => line.replaceAll(what, value), command)
  const onlyInHelm4 = major === 3 ? ' --server-side=true --force-conflicts' : ''
  const program = [process.execPath, ...roleArguments()].join(' ')
  return filled
    .replace(onlyInHelm4, '')
    .replaceAll(/\bshop\b/g, name)
    .replace(/^curtail (?=key)/, `API_KEYS_SECRET=${name}-curtail-api-keys ${program} `)
    .replace(
      /^curtail (?=block)/,
      `BLOCKED_TARGETS_CONFIG_MAPS=${name}-curtail-blocked-targets ${program} `,
    )
}

/** Runs a command in the namespace of the release; returns its output. */
function run({ shell, name, major }: DocumentedRelease, command: string): Promise<string> {
  const isHelm = command.startsWith('helm')
  const changesChart = isHelm && / (install|upgrade) /.test(command)
  const more = [
    ...(isHelm ? ['--no-hooks'] : []), // without a node, no Job completes
    ...(changesChart ? [UNVALIDATED] : []),
  ]
  const environment = [
    `KUBECONFIG=$HOME/kubeconfig-${name}`,
    `KUBE_EDITOR="sed -i 's/storage: 1Gi/storage: 2Gi/'"`,
    `NODE_COMPILE_CACHE=${process.env['NODE_COMPILE_CACHE'] ?? ''}`,
  ]
  const line = [command, ...more].join(' ')
  return shell.shOrThrow(`export ${environment.join(' ')}\n${line}`, major)
}

/** Creates the files that the commands read. */
async function prepareFolder({ shell, name }: DocumentedRelease): Promise<void> {
  const { folder, shOrThrow } = shell
  for (const [file, content] of Object.entries(files)) await writeFile(join(folder, file), content)
  await shOrThrow(
    [
      `kubectl config view --raw > kubeconfig-${name}`,
      `export KUBECONFIG=kubeconfig-${name}`,
      `kubectl config set-context --current --namespace=${name}`,
      `cp ${join(chartFolder, 'files', 'rate-limits.yaml')} rate-limits.yaml`,
      `ln -sfn ${join(chartFolder, '../../k8s')} k8s`,
      'openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.crt -subj /CN=s -days 1',
    ].join('\n'),
  )
}

/** Creates what only a node or another controller would create: a pod and its volume claim. */
async function prepareObjects(release: DocumentedRelease): Promise<void> {
  const pod = `${release.name}-curtail-cassandra-0`
  const container = { name: 'cassandra', image: 'cassandra' }
  const objects = [
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: pod }, spec: { containers: [container] } },
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: `data-${pod}` } },
      spec: {
        ...{ storageClassName: 'expandable', volumeName: pod, accessModes: ['ReadWriteOnce'] },
        resources: { requests: { storage: '1Gi' } },
      },
    },
    {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass' },
      ...{ metadata: { name: 'expandable' }, provisioner: 'none', allowVolumeExpansion: true },
    },
  ]
  const list = { apiVersion: 'v1', kind: 'List', items: objects }
  await writeFile(join(release.shell.folder, 'objects.json'), JSON.stringify(list))
  const bound = '{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}'
  await run(
    release,
    [
      'kubectl apply -f objects.json',
      `kubectl patch pvc data-${pod} --subresource=status --type=merge -p '${bound}'`,
      `kubectl get secret ${release.name}-curtail-code-secret -o jsonpath='{.data.secret}' | ` +
        'base64 -d > code-secret',
    ].join('\n'),
  )
}
