// Helm upgrades at a real API server, without a node: the code secret is never replaced silently,
// and no command of a runbook makes a later upgrade fail.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findHelm } from '../parts/helm.ts'
import { type KubeApiserver, startKubeApiserver } from '../parts/kube-apiserver.ts'
import { scriptsOf } from '../parts/runbook-commands.ts'
import { chartFolder, someImage } from './chart-render.ts'

const START_MS_MAX = 40 * 60_000 // when Kubernetes has yet to be built
const TEST_MS_MAX = 120_000
const COMMAND_MS_MAX = 60_000
const NAMESPACE = 'store'
const run = promisify(execFile)
const runbooks = new URL('../../docs/runbooks/', import.meta.url)

let server: KubeApiserver
let folder: string

beforeAll(async () => {
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  folder = await mkdtemp(join(tmpdir(), 'curtail-upgrade-'))
  await mustSh(`kubectl create namespace ${NAMESPACE}`)
  await mustSh(`helm install curtail-crds ${dirname(chartFolder)}/curtail-crds -n ${NAMESPACE}`)
}, START_MS_MAX)

afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true })
})

interface Ran {
  readonly code: number
  readonly text: string
}

/** Runs a line in a shell that finds kubectl and Helm 4. */
async function sh(line: string): Promise<Ran> {
  const path = [server.programs, dirname(await findHelm(4)), process.env['PATH'] ?? ''].join(':')
  const env = { PATH: path, HOME: folder, KUBECONFIG: server.kubeconfig, NS: NAMESPACE }
  const options = { cwd: folder, env, timeout: COMMAND_MS_MAX }
  return run('sh', ['-ec', line], options).then(
    ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
    (error: unknown) => {
      const { code, stdout = '', stderr = '' } = error as { code: number } & Record<string, string>
      return { code, text: `${stdout}${stderr}` }
    },
  )
}

async function mustSh(line: string): Promise<string> {
  const { code, text } = await sh(line)
  if (code !== 0) throw new Error(`${line} exited with ${code}: ${text}`)
  return text
}

/** The Helm command with the values of these tests; nothing is ready here, as there is no node. */
const helm = (command: string, release: string, more = '') =>
  `helm ${command} ${release} ${chartFolder} -n ${NAMESPACE} ` +
  `--set image.repository=${someImage.repository} ${more}`

const secretOf = (release: string) =>
  mustSh(
    `kubectl -n ${NAMESPACE} get secret ${release}-curtail-code-secret --ignore-not-found ` +
      `-o jsonpath='{.data.secret}'`,
  )

test(
  'a missing code secret is refused, whatever else the upgrade changes, until it is restored',
  async () => {
    await mustSh(helm('install', 'lost'))
    const before = await secretOf('lost')
    expect(Buffer.from(before, 'base64')).toHaveLength(32)
    await mustSh(helm('upgrade', 'lost', '--set edge.replicas=3'))
    expect(await secretOf('lost')).toBe(before)

    await mustSh(`kubectl -n ${NAMESPACE} delete secret lost-curtail-code-secret`)
    for (const more of ['', '--set edge.replicas=4', '--dry-run=server', '--install']) {
      const { code, text } = await sh(helm('upgrade', 'lost', more))
      expect([more, code]).toEqual([more, 1])
      expect(text).toContain('The Secret lost-curtail-code-secret is missing')
      expect(text).toContain('pools.codeSecret.existingSecret')
      expect([more, await secretOf('lost')]).toEqual([more, ''])
    }

    // By the command that the refusal prints.
    const { text } = await sh(helm('upgrade', 'lost'))
    const printed = /^ *(kubectl .* create secret generic .*)$/m.exec(text)?.[1] ?? ''
    await writeFile(join(folder, 'backup'), Buffer.from(before, 'base64'))
    await mustSh(printed.replace('FILE', 'backup'))
    await mustSh(helm('upgrade', 'lost'))
    expect(await secretOf('lost')).toBe(before)
  },
  TEST_MS_MAX,
)

test(
  'another secret is taken where it is named; one without its key is refused',
  async () => {
    await mustSh(helm('install', 'other'))
    await mustSh(`kubectl -n ${NAMESPACE} delete secret other-curtail-code-secret`)
    await mustSh(helm('upgrade', 'other', '--set pools.codeSecret.existingSecret=mine'))
    expect(await secretOf('other')).toBe('')
    await mustSh(`kubectl -n ${NAMESPACE} create secret generic other-curtail-code-secret`)
    const { code, text } = await sh(helm('upgrade', 'other'))
    expect([code, text]).toEqual([1, expect.stringContaining('has no key secret')])
    expect(await secretOf('other')).toBe('')
  },
  TEST_MS_MAX,
)

test(
  'a first installation that failed keeps its secret; an uninstalled one may have another',
  async () => {
    const bad = helm('install', 'half', '--set-string edge.service.annotations.UPPER/x/y=1')
    expect((await sh(bad)).code).toBe(1)
    const before = await secretOf('half')
    expect(Buffer.from(before, 'base64')).toHaveLength(32)
    await mustSh(helm('upgrade', 'half', '--install'))
    expect(await secretOf('half')).toBe(before)

    await mustSh(`helm uninstall half -n ${NAMESPACE}`)
    expect(await secretOf('half')).toBe(before)
    await mustSh(`kubectl -n ${NAMESPACE} delete secret half-curtail-code-secret`)
    await mustSh(helm('install', 'half'))
    const after = await secretOf('half')
    expect(Buffer.from(after, 'base64')).toHaveLength(32)
    expect(after).not.toBe(before)
  },
  TEST_MS_MAX,
)
