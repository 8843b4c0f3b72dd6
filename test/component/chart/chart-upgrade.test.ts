// Helm upgrades on a real API server, without a node: an upgrade never replaces the code secret
// silently, and succeeds after every runbook command.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findHelm, helmMajors } from '../../dependencies/helm.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { scriptsOf } from '../../kit/runbook-commands.ts'
import { chartFolder, someImage } from '../../kit/chart/chart-render.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 120_000
const COMMAND_MS_MAX = 60_000
const NAMESPACE = 'store'
const run = promisify(execFile)
const runbooks = new URL('../../../docs/runbooks/', import.meta.url)

let server: KubeApiserver
let folder: string

beforeAll(async () => {
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  folder = await mkdtemp(join(tmpdir(), 'curtail-upgrade-'))
  await shOrThrow(`kubectl create namespace ${NAMESPACE}`)
  await shOrThrow(`helm install curtail-crds ${dirname(chartFolder)}/curtail-crds -n ${NAMESPACE}`)
}, START_MS_MAX)

afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true })
})

/** Whether a runbook command writes, except to pods and CronJobs, which do not exist here. */
const isWriting = (line: string) =>
  /^(helm|kubectl) /.test(line) &&
  !/ (delete pod|describe|exec|get|history|logs|port-forward|top|wait) | --from=/.test(line)

interface Result {
  readonly code: number
  readonly output: string
}

/** Runs a line in a shell with kubectl and Helm 4 on its PATH. */
async function sh(line: string): Promise<Result> {
  const path = [server.programs, dirname(await findHelm(4)), process.env['PATH'] ?? ''].join(':')
  const env = { PATH: path, HOME: folder, KUBECONFIG: server.kubeconfig, NS: NAMESPACE }
  const options = { cwd: folder, env, timeout: COMMAND_MS_MAX }
  return run('sh', ['-ec', line], options).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    (error: unknown) => {
      const { code, stdout = '', stderr = '' } = error as { code: number } & Record<string, string>
      return { code, output: `${stdout}${stderr}` }
    },
  )
}

async function shOrThrow(line: string): Promise<string> {
  const { code, output } = await sh(line)
  if (code !== 0) throw new Error(`${line} exited with ${code}: ${output}`)
  return output
}

/** The Helm command with the values of these tests. */
const helm = (command: string, release: string, more = '') =>
  `helm ${command} ${release} ${chartFolder} -n ${NAMESPACE} ` +
  `--set image.repository=${someImage.repository} ${more}`

const secretOf = (release: string) =>
  shOrThrow(
    `kubectl -n ${NAMESPACE} get secret ${release}-curtail-code-secret --ignore-not-found ` +
      `-o jsonpath='{.data.secret}'`,
  )

test(
  'an upgrade fails without the code secret until the secret is restored',
  async () => {
    await shOrThrow(helm('install', 'lost'))
    const before = await secretOf('lost')
    expect(Buffer.from(before, 'base64')).toHaveLength(32)
    await shOrThrow(helm('upgrade', 'lost', '--set edge.replicas=3'))
    expect(await secretOf('lost')).toBe(before)

    await shOrThrow(`kubectl -n ${NAMESPACE} delete secret lost-curtail-code-secret`)
    for (const more of ['', '--set edge.replicas=4', '--dry-run=server', '--install']) {
      const { code, output } = await sh(helm('upgrade', 'lost', more))
      expect([more, code]).toEqual([more, 1])
      expect(output).toContain('The Secret lost-curtail-code-secret is missing')
      expect(output).toContain('pools.codeSecret.existingSecret')
      expect([more, await secretOf('lost')]).toEqual([more, ''])
    }

    // The error contains the command that restores the secret.
    const { output } = await sh(helm('upgrade', 'lost'))
    const printed = /^ *(kubectl .* create secret generic .*)$/m.exec(output)?.[1] ?? ''
    await writeFile(join(folder, 'backup'), Buffer.from(before, 'base64'))
    await shOrThrow(printed.replace('FILE', 'backup'))
    await shOrThrow(helm('upgrade', 'lost'))
    expect(await secretOf('lost')).toBe(before)
  },
  TEST_MS_MAX,
)

test(
  'an upgrade uses the secret that the values name, and rejects one without its key',
  async () => {
    await shOrThrow(helm('install', 'other'))
    await shOrThrow(`kubectl -n ${NAMESPACE} delete secret other-curtail-code-secret`)
    await shOrThrow(helm('upgrade', 'other', '--set pools.codeSecret.existingSecret=mine'))
    expect(await secretOf('other')).toBe('')
    await shOrThrow(`kubectl -n ${NAMESPACE} create secret generic other-curtail-code-secret`)
    const { code, output } = await sh(helm('upgrade', 'other'))
    expect([code, output]).toEqual([1, expect.stringContaining('has no key secret')])
    expect(await secretOf('other')).toBe('')
  },
  TEST_MS_MAX,
)

test.each(helmMajors)(
  'upgrades, a rollback, an uninstall and a reinstall keep the operator lists: Helm %d',
  async (major) => {
    const release = `lists${major}`
    const on = async (command: string) => {
      await shOrThrow(`${await findHelm(major)} ${command}`)
    }
    const values = `${chartFolder} -n ${NAMESPACE} --set image.repository=${someImage.repository}`
    await on(`install ${release} ${values}`)
    const objects = [
      ['secret', 'api-keys', '{"data":{"api-keys.ndjson":"a2V5cw=="}}'],
      ['configmap', 'blocked-targets', '{"data":{"blocked-targets.txt":"evil.example"}}'],
    ] as const
    const at = (kind: string, name: string) => `${kind} ${release}-curtail-${name} -n ${NAMESPACE}`
    for (const [kind, name, patch] of objects)
      await shOrThrow(`kubectl patch ${at(kind, name)} --type=merge -p '${patch}'`)
    const read = async () => {
      const all = objects.map(([kind, name]) =>
        shOrThrow(`kubectl get ${at(kind, name)} -o jsonpath='{.data}'`),
      )
      return Promise.all(all)
    }
    const before = await read()
    expect(before.join()).toMatch(/a2V5cw==.*evil\.example/)
    const commands = [
      `upgrade ${release} ${values}`,
      `upgrade ${release} ${values} --set commonLabels.team=links`,
      `rollback ${release} 1 -n ${NAMESPACE}`,
      `uninstall ${release} -n ${NAMESPACE}`,
      `install ${release} ${values}`,
    ]
    for (const command of commands) {
      await on(command)
      expect([command, await read()]).toEqual([command, before])
    }
  },
  TEST_MS_MAX,
)

test(
  'a failed first installation keeps its secret, which may be deleted after an uninstall',
  async () => {
    const bad = helm('install', 'half', '--set-string edge.service.annotations.UPPER/x/y=1')
    expect((await sh(bad)).code).toBe(1)
    const before = await secretOf('half')
    expect(Buffer.from(before, 'base64')).toHaveLength(32)
    await shOrThrow(helm('upgrade', 'half', '--install'))
    expect(await secretOf('half')).toBe(before)

    await shOrThrow(`helm uninstall half -n ${NAMESPACE}`)
    expect(await secretOf('half')).toBe(before)
    await shOrThrow(`kubectl -n ${NAMESPACE} delete secret half-curtail-code-secret`)
    await shOrThrow(helm('install', 'half'))
    const after = await secretOf('half')
    expect(Buffer.from(after, 'base64')).toHaveLength(32)
    expect(after).not.toBe(before)
  },
  TEST_MS_MAX,
)

test(
  'an upgrade that changes the volumes of Cassandra fails before it changes anything',
  async () => {
    const size = '--set cassandra.bundled.storage.size'
    await shOrThrow(helm('install', 'disk'))
    const inBytes = '--set-json cassandra.bundled.storage.size=5368709120'
    for (const same of [`${size}=5120Mi`, inBytes]) await shOrThrow(helm('upgrade', 'disk', same))
    const className = '--set cassandra.bundled.storage.className=fast'
    for (const changed of [`${size}=6Gi`, className]) {
      const { code, output } = await sh(helm('upgrade', 'disk', `${changed} --set logLevel=warn`))
      expect([code, output]).toEqual([1, expect.stringContaining('storage must not change')])
    }
    const deployment = await shOrThrow(
      `kubectl -n ${NAMESPACE} get deploy disk-curtail-create -o yaml`,
    )
    expect(deployment).not.toContain('value: warn')

    // The error contains the command that allows the change. Here, no garbage collector runs.
    const { output } = await sh(helm('upgrade', 'disk', `${size}=6Gi`))
    const printed = /^ *(kubectl .* delete statefulset .*)$/m.exec(output)?.[1] ?? ''
    await shOrThrow(printed.replace('orphan', 'background'))
    await shOrThrow(helm('upgrade', 'disk', `${size}=6Gi`))
  },
  TEST_MS_MAX,
)

test(
  'an upgrade succeeds after every runbook command that writes',
  async () => {
    const names = (await readdir(runbooks)).sort()
    const contents = await Promise.all(
      names.map((name) => readFile(new URL(name, runbooks), 'utf8')),
    )
    const lines = contents.flatMap((text, at) => scriptsOf({ name: names[at] ?? '', text }))
    const writing = [...new Set(lines.filter(isWriting))]
    expect(writing.length).toBeGreaterThan(9)
    await shOrThrow(helm('install', 'books'))
    await shOrThrow(helm('upgrade', 'books'))
    await writeFile(join(folder, 'pools.yaml'), 'pools: {}\n')
    for (const list of ['blocked-targets.txt', 'api-keys.ndjson']) {
      await writeFile(join(folder, list), '# a corrected list\n')
    }
    const rules = join(chartFolder, 'files', 'rate-limits.yaml')
    await shOrThrow(`cp ${rules} rate-limits.yaml`)
    const certificate = '-newkey rsa:2048 -nodes -keyout tls.key -out tls.crt -subj /CN=s -days 1'
    await shOrThrow(`openssl req -x509 ${certificate}`)
    await writeFile(join(folder, 'code-secret'), Buffer.from(await secretOf('books'), 'base64'))
    const runAll = async (program: string) => {
      for (const line of writing.filter((one) => one.startsWith(program))) {
        const secret = line.includes('code-secret') ? 'books-curtail-code-secret' : 'books-tls'
        const filled = line
          .replace(/\$R\b/g, 'books-curtail')
          .replace(/\bRELEASE\b/g, 'books')
          .replace(/\bCHART\b/g, chartFolder)
          .replace(/\bREVISION\b/g, '1')
          .replace(/\bCOUNT\b/g, '4')
          .replace(/\bMEBIBYTES\b/g, '800')
          .replace(/\bMEMORY\b/g, '128mb')
          .replace(/\bLIMIT\b/g, '1Gi')
          .replace(/\bSECRET\b/g, secret)
        // The Job that checks the rules stays pending without a node; test/cluster runs it.
        const hooks = line.includes(' upgrade ') ? ' --no-hooks' : ''
        await shOrThrow(`${filled}${hooks}`)
      }
      await shOrThrow(helm('upgrade', 'books'))
    }
    await runAll('kubectl') // first, because some Helm commands take over fields by force
    await runAll('helm')
    // The runbooks warn of this command.
    await shOrThrow(`kubectl -n ${NAMESPACE} scale deploy/books-curtail-edge --replicas=7`)
    expect((await sh(helm('upgrade', 'books'))).output).toContain('conflict')
  },
  2 * TEST_MS_MAX,
)

test(
  'the notes of an installation forward each local port once',
  async () => {
    await shOrThrow(helm('install', 'notes'))
    const notes = await shOrThrow(`helm get notes notes -n ${NAMESPACE}`)
    const ports = [...notes.matchAll(/ port-forward \S+ (\d+):/g)].map(([, port]) => port)
    expect(ports.length).toBeGreaterThan(2)
    expect(new Set(ports).size).toBe(ports.length)
    // The other commands use exactly the forwarded ports.
    const used = [...notes.matchAll(/http:\/\/localhost:(\d+)\//g)].map(([, port]) => port)
    expect(ports).toEqual([...new Set(used.filter((port) => ports.includes(port)))])
  },
  TEST_MS_MAX,
)

test(
  'a missing CRD of RateLimitPolicies is reported; without it the limits are in a file',
  async () => {
    await shOrThrow('kubectl delete crd ratelimitpolicies.curtail.dev')
    const { code, output } = await sh(helm('install', 'old'))
    expect([code, output]).toEqual([1, expect.stringContaining('has no CRD of RateLimitPolicies')])
    await shOrThrow(helm('install', 'old', '--set ratelimit.policies.enabled=false'))
    await shOrThrow(`kubectl -n ${NAMESPACE} get configmap old-curtail-ratelimit`)
  },
  TEST_MS_MAX,
)
