// The commands of operators as the documents show them, with their effects: `kubectl exec` in the
// pods of a release, and the pod of docs/cassandra.md. The program itself lists its commands.
import { readFile } from 'node:fs/promises'
import { expect } from '@jest/globals'
import { parse } from 'yaml'
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, kubectl, mustRun } from './cluster.ts'

const REQUEST_MS_MAX = 10_000
const CODE = 'roles-csv'
const RULES = 'src/limits/standalone.yaml'
const DESCRIPTOR = 'route=create,client=192.0.2.1/32'

/** What the manifest of a pod has. */
interface PodManifest {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly containers: readonly [Container] }
}
interface Container {
  readonly args: readonly string[]
  readonly env: readonly object[]
}

/** A release with an external Cassandra that requires client certificates. */
export interface CommandTarget {
  readonly namespace: string
  /** The prefix of its objects' names. */
  readonly fullName: string
  /** The URL of its edge. */
  readonly edge: string
  readonly cassandraHost: string
}

/**
 * Runs `curtail COMMAND`, which must exit with 0 and print what is expected; resolves to the first
 * group of the match.
 */
type Run = (command: string, expected: RegExp, input?: string) => Promise<string>

/** Runs every command; resolves to the roles and commands of the program that were not run. */
export async function runCommands(target: CommandTarget): Promise<readonly string[]> {
  const ran: string[] = []
  const runIn = (component: string): Run => {
    const pod = [`deploy/${target.fullName}-${component}`, '--namespace', target.namespace]
    return async (command, expected, input) => {
      const args = ['exec', ...(input === undefined ? [] : ['-i']), ...pod, '--', 'curtail']
      const stdout = await mustRun('kubectl', [...args, ...command.split(' ')], input)
      ran.push(command)
      return matchOf(command, stdout, expected)
    }
  }
  const create = runIn('create')
  await Promise.all([
    changeLinks(create, target),
    importLinks(create),
    changeLists(runIn('controller'), target),
    checkLimits(runIn('ratelimit')),
    // The pool is then empty, but the create pods have claimed blocks before.
    raisePool(target).then((command) => ran.push(command)),
  ])
  const script = await printCompletion(target)
  return commandsOf(script).filter(
    (name) => !ran.some((command) => `${command} `.startsWith(`${name} `)),
  )
}

function printCompletion({ fullName, namespace }: CommandTarget): Promise<string> {
  const pod = [`deploy/${fullName}-create`, '--namespace', namespace]
  return kubectl('exec', ...pod, '--', 'curtail', 'completion', 'bash')
}

function matchOf(command: string, stdout: string, expected: RegExp): string {
  const match = expected.exec(stdout)
  expect([command, match === null ? stdout : '']).toEqual([command, ''])
  return match?.[1] ?? ''
}

/** `link`, `report` and `pool status`. */
async function changeLinks(run: Run, { edge }: CommandTarget): Promise<void> {
  const target = 'https://roles.example/1'
  const code = await run(`link create ${target}`, /^http:\/\/localhost:8080\/(\w+)\n$/)
  const inState = (state: string) => new RegExp(`^${code} +${state} .* ${target}$`, 'm')
  await run(`link show ${code}`, inState('active'))
  await run(`link disable ${code} --operator=ann`, inState('disabled'))
  await run('link list --target-host=roles.example --state=disabled', inState('disabled'))
  const response = await fetch(`${edge}/abuse`, {
    method: 'POST',
    body: new URLSearchParams({ link: code, reason: 'spam' }),
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  })
  const id = matchOf('POST /abuse', await response.text(), /id="report">([^<]+)</)
  await run('report list', new RegExp(` ${id} +${code} +spam +disabled `))
  await run(`report show ${id}`, new RegExp(`^Report: +${id}\n[^]*\nCode: +${code}\n`))
  await run(`link enable ${code} --operator=ann`, inState('active'))
  await run(`link delete ${code} --operator=ann`, new RegExp(`^${code} deleted\n$`))
  await run('pool status', /^default +\d+ +\d+ /m)
}

/** `import` and `export`. */
async function importLinks(run: Run): Promise<void> {
  const csv = `short_code,long_url\n${CODE},https://roles.example/csv\n`
  await run('import - --format csv', /\n1 +1 +0 +0 +0 +0 +0 +0\n$/, csv)
  await run('export', new RegExp(`^{"short_code":"${CODE}",`, 'm'))
}

/** `key` and `block`; the controller notifies all pods that mount the list. */
async function changeLists(run: Run, { namespace }: CommandTarget): Promise<void> {
  const by = '--operator=ann'
  const selector = 'app.kubernetes.io/component in (create,redirect)'
  /** The version of the lists on each pod, without the suffix that the controller adds later. */
  const versionsOf = async () => {
    const path = String.raw`{range .items[*]}{.metadata.annotations.curtail\.dev/lists}{"\n"}{end}`
    const pods = ['pods', '--namespace', namespace, '-l', selector]
    const values = (await kubectl('get', ...pods, '-o', `jsonpath=${path}`)).split('\n')
    return values.slice(0, -1).map((value) => value.replace(/\..*/, ''))
  }
  /** Runs a command that changes a list; every pod must get the same new version. */
  const change: typeof run = async (command, ...rest) => {
    const before = await versionsOf()
    const result = await run(command, ...rest)
    await waitFor(`the annotation of every pod to change after ${command}`, async () => {
      const [version = '', ...others] = new Set(await versionsOf())
      return version !== '' && others.length === 0 && !before.includes(version)
    })
    return result
  }
  await change(`key create shop --creator=42 ${by}`, /^curtail_[\w-]{43}\n$/)
  await run(`key list ${by}`, /^shop +42 +never +active$/m)
  await change(`key revoke shop ${by}`, /^shop revoked$/m)
  await change(`block add evil.example sites.example/bad ${by}`, /^2 entries added, /)
  await run(`block import - ${by}`, /^1 entry added, /, 'import.example\n')
  const match = '--match=https://www.evil.example/path'
  await run(`block list ${match} ${by}`, /^blocked by evil\.example\n$/)
  await run(`block remove evil.example ${by}`, /^1 entry removed\n$/)
}

/** `limit` and `ratelimit-check`. */
async function checkLimits(run: Run): Promise<void> {
  await run('limit top', /^(RULE |no hits )/)
  await run(`limit explain edge ${DESCRIPTOR}`, /^ *hits edge\S*: token_bucket, /m)
  await run(`limit reset edge ${DESCRIPTOR}`, /^counter of edge\S* reset$/m)
  const rules = await readFile(RULES, 'utf8')
  await run(`ratelimit-check - --descriptor ${DESCRIPTOR}`, /^no faults: 1 file, /, rules)
}

/** `pool raise` in the pod of docs/cassandra.md, with the release's Secrets; resolves to it. */
async function raisePool({ namespace, cassandraHost }: CommandTarget): Promise<string> {
  const docs = await readFile('docs/cassandra.md', 'utf8')
  const [, documented = ''] = /```yaml\n(apiVersion: v1\nkind: Pod\n[^]*?)```/.exec(docs) ?? []
  const manifest = documented
    .replace('IMAGE', 'localhost/curtail:test')
    .replace('cassandra.example', cassandraHost)
    .replace('{ name: cassandra,', '{ name: cassandra-login,')
  const { spec, ...pod } = parse(manifest) as PodManifest
  const [container] = spec.containers
  const mountPath = '/etc/curtail/tls'
  const files = { CA: 'ca.crt', CERT: 'tls.crt', KEY: 'tls.key' }
  const env = Object.entries(files).map(([suffix, file]) => ({
    name: `CASSANDRA_TLS_${suffix}`,
    value: `${mountPath}/${file}`,
  }))
  const withTls = {
    ...container,
    env: [...container.env, ...env],
    volumeMounts: [{ name: 'tls', mountPath, readOnly: true }],
  }
  const volumes = [{ name: 'tls', secret: { secretName: 'cassandra-tls', defaultMode: 0o440 } }]
  const metadata = { ...pod.metadata, namespace }
  await applyObjects({ ...pod, metadata, spec: { ...spec, containers: [withTls], volumes } })
  const named = [`pod/${pod.metadata.name}`, '--namespace', namespace]
  const hasExited = '--for=jsonpath={.status.containerStatuses[0].state.terminated}'
  await kubectl('wait', ...named, hasExited, '--timeout=60s')
  const command = container.args.join(' ')
  const expected = /^default: the last claimed block was \d+, and is now 5000\n$/
  matchOf(command, await kubectl('logs', ...named), expected)
  return command
}

/** Each command of the program, or the role if it has only one, by its script for bash. */
function commandsOf(script: string): readonly string[] {
  const contexts = [...script.matchAll(/^ +'([a-z][a-z-]*(?: [a-z][a-z-]*)?)'\) /gm)].map(
    ([, context = '']) => context,
  )
  const ofProgram = /^(help|completion)( |$)/
  return contexts.filter(
    (name) => !ofProgram.test(name) && !contexts.some((context) => context.startsWith(`${name} `)),
  )
}
