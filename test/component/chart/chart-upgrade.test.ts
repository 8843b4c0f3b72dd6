// Helm upgrades on a real API server, without a node: an upgrade never replaces the code secret
// silently, and succeeds after every runbook command.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findHelm, helmMajors } from '../../dependencies/helm.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { chartFolder, someImage } from '../../kit/chart/chart-render.ts'
import { writingCommands } from '../../kit/chart/documented-commands.ts'
import {
  helm,
  type HelmShell,
  NAMESPACE,
  openHelmShell,
  UNVALIDATED,
} from '../../kit/chart/helm-shell.ts'
import { heldJobs, heldValues, startHeldPod, verdictOf } from '../../kit/chart/held-jobs.ts'
import { createParent, fillLists } from '../../kit/chart/release-objects.ts'
import { runDocumentedCommands, upgrade } from '../../kit/chart/run-documented-commands.ts'
import { waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 120_000

let server: KubeApiserver | undefined
let shell: HelmShell
let folder: string
let sh: HelmShell['sh']
let shOrThrow: HelmShell['shOrThrow']
let secretOf: HelmShell['secretOf']
let close: HelmShell['close'] | undefined

beforeAll(async () => {
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  shell = await openHelmShell(server)
  ;({ folder, sh, shOrThrow, secretOf, close } = shell)
}, START_MS_MAX)

afterAll(async () => {
  await server?.stop()
  await close?.()
})

test(
  'an upgrade fails without the code secret until the secret is restored',
  async () => {
    await shOrThrow(helm('install', 'lost'))
    const before = await secretOf('lost')
    expect(Buffer.from(before, 'base64')).toHaveLength(32)
    await shOrThrow(helm('upgrade', 'lost', '--set edge.replicas=3'))
    expect(await secretOf('lost')).toBe(before)

    await shOrThrow(`kubectl -n ${NAMESPACE} delete secret lost-curtail-code-secret`)
    await shOrThrow(`kubectl -n ${NAMESPACE} delete deploy lost-curtail-create`)
    for (const more of ['', '--set edge.replicas=4', '--dry-run=server', '--install']) {
      const { code, output } = await sh(helm('upgrade', 'lost', more))
      expect([more, code]).toEqual([more, 1])
      expect(output).toContain('The Secret lost-curtail-code-secret is missing')
      expect(output).toContain('If you used existingSecret or pools.mode off before')
      expect(output).toContain('run helm uninstall lost and install')
      expect([more, await secretOf('lost')]).toEqual([more, ''])
    }

    // The error contains the command that restores the secret.
    const { output } = await sh(helm('upgrade', 'lost'))
    const printed = /^ *(kubectl .* create secret generic .*)$/m.exec(output)?.[1] ?? ''
    await writeFile(join(folder, 'backup'), Buffer.from(before, 'base64'))
    await shOrThrow(printed.replace('FILE', 'backup'))
    await shOrThrow(helm('upgrade', 'lost'))
    expect(await secretOf('lost')).toBe(before)

    // A release with another name has another Secret.
    const renamed = await sh(helm('upgrade', 'lost', '--set fullnameOverride=other'))
    expect([renamed.code, renamed.output]).toEqual([
      1,
      expect.stringContaining('The Secret other-code-secret is missing'),
    ])
  },
  TEST_MS_MAX,
)

test.each(helmMajors)(
  'the command in the error restores the code secret without a backup: Helm %d',
  async (major) => {
    const release = `undo${major}`
    await shOrThrow(helm('install', release), major)
    await shOrThrow(helm('upgrade', release), major)
    const before = await secretOf(release)
    await shOrThrow(`kubectl -n ${NAMESPACE} delete secret ${release}-curtail-code-secret`)
    const { output } = await sh(helm('upgrade', release), major)
    const [history = '', rollback = ''] = output.match(/(?<=^ +)helm .*$/gm) ?? []
    const deployed = /^(\d+).*\bdeployed\b/m.exec(await shOrThrow(history, major))?.[1] ?? ''
    await shOrThrow(rollback.replace('REVISION', deployed), major)
    await shOrThrow(helm('upgrade', release), major)
    expect([before.length, await secretOf(release)]).toEqual([44, before])
  },
  TEST_MS_MAX,
)

test(
  'an upgrade after a first installation that created nothing creates the secret',
  async () => {
    // No node runs the Job that checks the rules.
    const rules = `--set-file ratelimit.rules=${chartFolder}/files/rate-limits.yaml`
    expect((await sh(helm('install', 'hook', `${rules} --timeout 1s`))).code).toBe(1)
    await shOrThrow(helm('upgrade', 'hook', '--install'))
    expect(await secretOf('hook')).toHaveLength(44)
  },
  TEST_MS_MAX,
)

test(
  'an upgrade of another chart, which enables this chart, creates the secret once',
  async () => {
    const upgrade = await createParent(folder)
    for (const isEnabled of [false, true]) await shOrThrow(upgrade(isEnabled))
    const before = await secretOf('parent')
    await shOrThrow(upgrade(true))
    expect([before.length, await secretOf('parent')]).toEqual([44, before])
    await shOrThrow(`kubectl -n ${NAMESPACE} delete secret parent-curtail-code-secret`)
    const { code, output } = await sh(upgrade(true))
    expect([code, output]).toEqual([1, expect.stringContaining('code-secret is missing')])
    expect(output).not.toContain('helm uninstall')
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
    const read = await fillLists(shOrThrow, release)
    const before = await read()
    expect(before.join()).toMatch(/a2V5cw==.*evil\.example/)
    const commands = [
      `upgrade ${release} ${values}`,
      `upgrade ${release} ${values} --set commonLabels.team=links ${UNVALIDATED}`,
      `rollback ${release} 1 -n ${NAMESPACE}`,
      `uninstall ${release} -n ${NAMESPACE}`,
      `install ${release} ${values} ${UNVALIDATED}`,
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

test.each(helmMajors)(
  'an upgrade succeeds after every documented command that writes: Helm %d',
  async (major) => {
    const { commands, unusedExceptions } = await writingCommands()
    expect(unusedExceptions).toEqual([])
    expect(commands.length).toBeGreaterThan(49)
    const name = `books${major}`
    const release = { shell, name, major }
    await runDocumentedCommands(release, commands)
    // The runbooks warn of this command.
    await shOrThrow(`kubectl -n ${name} scale deploy/${name}-curtail-edge --replicas=7`)
    if (major === 3) await upgrade(release)
    else await expect(upgrade(release)).rejects.toThrow('conflict')
  },
  4 * TEST_MS_MAX,
)

test(
  'admission policies hold the controller to Jobs of the chart and annotations of pods',
  async () => {
    await writeFile(join(folder, 'held.json'), JSON.stringify(heldValues))
    await shOrThrow(helm('install', 'held', '--values held.json'))
    const account = `system:serviceaccount:${NAMESPACE}:held-curtail-controller`
    const create = (manifest: string) =>
      sh(`kubectl create --dry-run=server --as=${account} -n ${NAMESPACE} -f ${manifest}`)
    const jobs = await heldJobs('held')
    for (const { name, object } of jobs) {
      await writeFile(join(folder, `${name}.json`), JSON.stringify(object))
    }
    const { name: last = '', verdict: rejection = '' } = jobs.at(-1) ?? {}
    const isHeld = async () => (await create(`${last}.json`)).output.includes(rejection)
    await waitFor('the permissions and the policies to be effective', isHeld)
    const { output } = await create(jobs.map(({ name }) => `${name}.json`).join(' -f '))
    expect(jobs.map((job) => [job.name, verdictOf(job, output)])).toEqual(
      jobs.map(({ name, verdict }) => [name, verdict]),
    )

    const patchHeldPod = await startHeldPod({ sh, shOrThrow }, account)
    const annotations = '{"metadata":{"annotations":{"curtail.dev/lists":"1"}}}'
    await waitFor('the permissions', async () => (await patchHeldPod(annotations)) === '')
    const image = '{"spec":{"containers":[{"name":"held","image":"two"}]}}'
    const rejects = async (body: string) =>
      (await patchHeldPod(body)).includes('must change only annotations of pods')
    for (const body of [image, '{"metadata":{"labels":{"a":"c"}}}'])
      await waitFor(`the rejection of ${body}`, () => rejects(body))
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

test.each(helmMajors)(
  'upgrades succeed after kubectl has created the CRDs, and has changed them: Helm %d',
  async (major) => {
    const { elsewhere } = await writingCommands()
    const documented = (words: string) => elsewhere.find((command) => command.includes(words)) ?? ''
    const release = `crds${major}`
    await sh('helm uninstall curtail-crds -n curtail-system')
    await shOrThrow(`${documented('kubectl delete crd ')} --ignore-not-found`)
    const apply = documented('curtail-crds | kubectl apply ')
    await shOrThrow(apply, major)
    await shOrThrow('kubectl wait --for condition=established crd --all --timeout 30s')
    await shOrThrow(helm('install', release), major)
    await shOrThrow(apply.replace('|', "| sed 's/maxLength: 63/maxLength: 62/' |"), major)
    await shOrThrow(helm('upgrade', release), major)
    // docs/install.md states that Helm does not manage these CRDs.
    const { output } = await sh('helm upgrade --install curtail-crds charts/curtail-crds', major)
    expect(output).toContain('invalid ownership metadata')
  },
  TEST_MS_MAX,
)
