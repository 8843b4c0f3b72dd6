// A release with Helm 4, `pools.mode: cron` and external stores (TLS, authentication) in a project
// of OpenShift: an upgrade from the last release, its rollback, an upgrade to the controller. No
// request fails, no link is lost, and every role runs with the ids that the project assigns.
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findHelm } from '../dependencies/helm.ts'
import { findLastRelease } from '../dependencies/last-release.ts'
import { waitFor } from '../kit/wait-for.ts'
import { deleteNamespace, getObject, helm, kubectl, mustRun, tryRun } from './cluster.ts'
import { startStores } from './external-stores.ts'
import { createProject, installOpenShift, uninstallOpenShift } from './openshift.ts'
import {
  current,
  INSTALL_MS_MAX,
  installDefinitions,
  ownValues,
  RELEASE,
  uninstall,
  type Version,
} from './release.ts'
import { checkLinks, creates, fillLinks, type KnownLink, redirects, underLoad } from './upgrade.ts'

const NAME = 'links'
const FULL_NAME = `${NAME}-curtail`
const STORES = 'stores'
/** The first ids of the two projects. */
const UID = 1_000_650_000
const UID_OF_STORES = 1_000_660_000
const TEST_MS_MAX = 15 * 60_000
const WAIT_MS_MAX = 120_000
/** Below the burst of one client. */
const LINKS = 15
const inNamespace = ['--namespace', NAME]
const wait = [...inNamespace, '--wait', '--timeout', '10m']
/** The pool is small, so that the controller refills it after the change of the mode. */
const cron = { mode: 'cron', list: [{ name: 'default', target: 20_000 }] }
const controller = { mode: 'controller', list: [{ name: 'default', target: 100_000 }] }

let stores: object

/** Installs the release, or upgrades it, to a version. */
async function deploy({ charts, imageTag: tag }: Version, values: object): Promise<void> {
  const args = ['upgrade', '--install', NAME, charts.curtail, ...ownValues, ...wait]
  const image = ['--set', `image.tag=${tag}`, '--values', '-']
  await mustRun(await findHelm(4), [...args, ...image], JSON.stringify({ ...stores, ...values }))
  const create = ['deployment', `${FULL_NAME}-create`, ...inNamespace]
  const path = '{.spec.template.spec.containers[0].image}'
  const used = await kubectl('get', ...create, '-o', `jsonpath=${path}`)
  expect(used).toBe(`localhost/curtail:${tag}`)
}

beforeAll(async () => {
  // The machine cannot run two releases.
  const status = ['status', RELEASE, '--namespace', RELEASE]
  if ((await tryRun(await findHelm(4), status)).code === 0) await uninstall()
  await installOpenShift()
  await Promise.all([createProject(STORES, UID_OF_STORES), createProject(NAME, UID)])
  const started = await startStores(STORES, NAME)
  stores = started.values
  await started.ready()
  await deploy(await findLastRelease(), { pools: cron })
}, INSTALL_MS_MAX)

afterAll(async () => {
  for (const namespace of [NAME, STORES]) await deleteNamespace(namespace)
  await uninstallOpenShift()
}, INSTALL_MS_MAX)

async function urlOf(service: string): Promise<string> {
  const { spec } = await getObject<{ spec: { clusterIP: string } }>(
    ...['service', service, ...inNamespace],
  )
  return `http://${spec.clusterIP}`
}

/** The limits of the release as a rules file, with which `cron` keeps them (docs/install.md). */
async function readRules(): Promise<string> {
  const named = ['configmap', `${FULL_NAME}-ratelimit`, ...inNamespace]
  const { data } = await getObject<{ data: Readonly<Record<string, string>> }>(...named)
  return data['rate-limits.yaml'] ?? ''
}

test(
  'an upgrade, its rollback, and the change to the controller: no request fails, no link is lost',
  async () => {
    const edge = await urlOf(`${FULL_NAME}-edge`)
    const links: KnownLink[] = [...(await fillLinks(edge, LINKS))]
    const change = async (what: string, act: () => Promise<unknown>) => {
      const plans = [redirects(edge, links[0]?.code ?? ''), creates(edge, links)]
      await underLoad(what, plans, async () => {
        await act()
      })
      await checkLinks(edge, links)
    }
    const ratelimit = { rules: await readRules() }
    expect(ratelimit.rules).toContain('domain: edge')
    await change('upgrade', () => deploy(current, { pools: cron, ratelimit }))
    await change('rollback', () => helm(4, 'rollback', NAME, ...wait))
    await installDefinitions()
    await change('controller', () => deploy(current, { pools: controller }))
    await waitFor('the refill by a Job of the controller', isRefilled, WAIT_MS_MAX)
    expect(await helm(4, 'test', NAME, ...inNamespace)).toMatch(/Phase: +Succeeded/)
  },
  TEST_MS_MAX,
)

async function isRefilled(): Promise<boolean> {
  const pool = ['codepool', `${FULL_NAME}-default`, ...inNamespace]
  const { status } = await getObject<{ status?: { refills?: number; level?: number } }>(...pool)
  return (status?.refills ?? 0) > 0
}

test(
  'k8s/standalone without its group serves links',
  async () => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'curtail-overlay-')))
    const group = '/spec/template/spec/securityContext/fsGroup'
    const overlay = {
      namespace: NAME,
      resources: [relative(folder, await realpath('k8s/standalone'))],
      images: [{ name: 'localhost/curtail', newTag: 'test' }],
      patches: [
        {
          target: { kind: 'StatefulSet' },
          patch: JSON.stringify([{ op: 'remove', path: group }]),
        },
      ],
    }
    try {
      await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(overlay))
      await kubectl('apply', '-k', folder)
    } finally {
      await rm(folder, { recursive: true })
    }
    const pods = ['statefulset/curtail-standalone', ...inNamespace]
    await kubectl('rollout', 'status', ...pods, '--timeout=180s')
    const url = await urlOf('curtail-standalone')
    await checkLinks(url, await fillLinks(url, 2))
  },
  TEST_MS_MAX,
)

/** The command and the user and group ids of each process of a project. */
async function processesOf(uid: number): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const read = async (pid: string) => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    const ids = /^Uid:\t(\d+).*\nGid:\t(\d+)/m.exec(status)?.slice(1, 3) ?? []
    if (ids[0] !== String(uid)) return []
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
    return [`${ids.join(':')} ${command.replaceAll('\0', ' ').trim()}`]
  }
  // A process may exit meanwhile.
  return (await Promise.all(pids.map((pid) => read(pid).catch(() => [])))).flat()
}

test('every role runs with the user of its project, and with no group of its own', async () => {
  const commands = [
    ...['controller', 'create', 'drain', 'ratelimit', 'redirect', 'standalone'].map(
      (role) => `/app/main.js ${role}`,
    ),
    '/usr/local/bin/envoy ',
  ]
  const ofRelease = await processesOf(UID)
  for (const command of commands) expectAll(ofRelease, UID, command)
  const ofStores = await processesOf(UID_OF_STORES)
  for (const command of ['redis-server ', 'CassandraDaemon']) {
    expectAll(ofStores, UID_OF_STORES, command)
  }
})

/** Checks that a command runs, and that its processes have the ids that SCC admission leaves. */
function expectAll(processes: readonly string[], uid: number, command: string): void {
  const found = processes.filter((line) => line.includes(command))
  expect([command, found.length > 0]).toEqual([command, true])
  expect(found.filter((line) => !line.startsWith(`${uid}:0 `))).toEqual([])
}
