// A release with Helm 4, `pools.mode: cron` and external stores (TLS, authentication) in a project
// of OpenShift: an upgrade from the last release, the change to the controller, and the rollback of
// both. No request fails, no link is lost, and every role and every command of operators runs with
// the ids that the project assigns.
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { CodePool } from '../../src/kube/code-pool/code-pool.ts'
import { findHelm } from '../dependencies/helm.ts'
import { findLastRelease } from '../dependencies/last-release.ts'
import { waitFor } from '../kit/wait-for.ts'
import { deleteNamespace, getObject, helm, kubectl, mustRun, tryRun } from './cluster.ts'
import { startStores } from './external-stores.ts'
import { createProject, installOpenShift, uninstallOpenShift } from './openshift.ts'
import { runCommands } from './pod-commands.ts'
import {
  current,
  INSTALL_MS_MAX,
  installDefinitions,
  ownValues,
  RELEASE,
  uninstall,
  type Version,
  waitForDependencies,
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
const cron = { mode: 'cron', list: [{ name: 'default', target: 20_000 }] }
/** The pool has fewer codes than `lowWater`: the controller refills it. */
const largerPool = { name: 'default', target: 40_000, lowWater: 30_000 }
const controller = { mode: 'controller', list: [largerPool] }
/** Of the last release, and of `cron` after the upgrade. */
const FIRST_REVISION = '1'
const CRON_REVISION = '2'
/** The roles that the commands in pods do not include. */
const services = ['controller', 'create', 'drain', 'ratelimit', 'redirect', 'standalone']
const jobs = ['migrate', 'refill', 'wait-for-codes']
/** `helm test` runs it. */
const TESTED = 'smoke'

interface Container {
  readonly name: string
  readonly command?: readonly string[]
  readonly securityContext: { readonly runAsUser: number }
}
interface ContainerStatus {
  readonly name: string
  readonly state: { readonly terminated?: { readonly exitCode: number } }
}
interface Pod {
  readonly spec: {
    readonly containers: readonly Container[]
    readonly initContainers?: readonly Container[]
  }
  readonly status: {
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

let stores: object
let edge: string
/** Must survive every change. */
const links: KnownLink[] = []

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
  // Limiters are ready before they are connected to Redis; until then they enforce lower limits.
  await waitForDependencies(NAME)
  edge = await urlOf(`${FULL_NAME}-edge`)
}, INSTALL_MS_MAX)

afterAll(async () => {
  for (const namespace of [NAME, STORES]) await deleteNamespace(namespace)
  const ofRelease = ['-l', `app.kubernetes.io/instance=${NAME}`]
  for (const kind of ['validatingadmissionpolicybinding', 'validatingadmissionpolicy']) {
    await kubectl('delete', kind, ...ofRelease)
  }
  await uninstallOpenShift()
}, INSTALL_MS_MAX)

async function urlOf(service: string): Promise<string> {
  const { spec } = await getObject<{ spec: { clusterIP: string } }>(
    ...['service', service, ...inNamespace],
  )
  return `http://${spec.clusterIP}`
}

/** Changes the release under load: no request fails, and every link redirects to its target. */
async function change(what: string, act: () => Promise<unknown>): Promise<void> {
  const plans = [redirects(edge, links[0]?.code ?? ''), creates(edge, links)]
  await underLoad(what, plans, async () => {
    await act()
  })
  await checkLinks(edge, links)
}

/** The limits of the release as a rules file, with which `cron` keeps them (docs/install.md). */
async function readRules(): Promise<string> {
  const named = ['configmap', `${FULL_NAME}-ratelimit`, ...inNamespace]
  const { data } = await getObject<{ data: Readonly<Record<string, string>> }>(...named)
  return data['rate-limits.yaml'] ?? ''
}

test(
  'an upgrade, and the change to the controller: no request fails, no link is lost',
  async () => {
    links.push(...(await fillLinks(edge, LINKS)))
    const ratelimit = { rules: await readRules() }
    expect(ratelimit.rules).toContain('domain: edge')
    await change('upgrade', () => deploy(current, { pools: cron, ratelimit }))
    await installDefinitions()
    const admissionPolicy = { enabled: true }
    const values = { pools: controller, controller: { admissionPolicy } }
    await untilRefilled(() => change('controller', () => deploy(current, values)))
    // The API server may apply it after this refill, but before the one after `pool raise`.
    await waitFor('the admission policy to apply', isJobRejected, WAIT_MS_MAX)
    expect(await helm(4, 'test', NAME, ...inNamespace)).toMatch(/Phase: +Succeeded/)
  },
  TEST_MS_MAX,
)

/** Whether the admission policy rejects a Job that the controller's account creates. */
async function isJobRejected(): Promise<boolean> {
  const account = `--as=system:serviceaccount:${NAME}:${FULL_NAME}-controller`
  const job = ['create', 'job', 'other', '--image=localhost/curtail:test', ...inNamespace]
  const { stderr } = await tryRun('kubectl', [...job, account, '--dry-run=server'])
  return stderr.includes('A refill Job must be controlled by a CodePool')
}

/** Calls `act`, which may create the CodePool; a Job of the controller must then refill it. */
async function untilRefilled<T>(act: () => Promise<T>): Promise<T> {
  const lastRefill = async () => {
    const { items } = await getObject<{ items: CodePool[] }>('codepools', ...inNamespace)
    return items[0]?.status?.lastRefill
  }
  const before = (await lastRefill())?.refill ?? 0
  const result = await act()
  const isRefilled = async () => {
    const last = await lastRefill()
    return last?.outcome === 'Succeeded' && last.refill > before
  }
  await waitFor('a Job of the controller to refill the pool', isRefilled, WAIT_MS_MAX)
  return result
}

test(
  'every command runs in the pods, as the documents show it',
  async () => {
    const cassandraHost = `cassandra.${STORES}.svc.cluster.local`
    const target = { namespace: NAME, fullName: FULL_NAME, edge, cassandraHost }
    const others = await untilRefilled(() => runCommands(target))
    expect(others.toSorted()).toEqual([...services, ...jobs, TESTED].sort())
  },
  TEST_MS_MAX,
)

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
    // kube-proxy adds the endpoint of the Service shortly after the pod has become ready.
    await waitFor('the endpoint of the Service', () => isReachable(url))
    await checkLinks(url, await fillLinks(url, 2))
  },
  TEST_MS_MAX,
)

async function isReachable(url: string): Promise<boolean> {
  try {
    await (await fetch(url, { signal: AbortSignal.timeout(5000) })).arrayBuffer()
    return true
  } catch {
    return false
  }
}

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
  const commands = [...services.map((role) => `/app/main.js ${role}`), '/usr/local/bin/envoy ']
  const ofRelease = await processesOf(UID)
  for (const command of commands) expectAll(ofRelease, UID, command)
  const ofStores = await processesOf(UID_OF_STORES)
  for (const command of ['redis-server ', 'CassandraDaemon']) {
    expectAll(ofStores, UID_OF_STORES, command)
  }
  const completed = await completedCommands()
  for (const job of jobs) expect(completed).toContain(`${UID} /app/main.js ${job}`)
})

/** The user and the end of the command of each container that has exited with 0. */
async function completedCommands(): Promise<readonly string[]> {
  const { items } = await getObject<{ items: readonly Pod[] }>('pods', ...inNamespace)
  return items.flatMap(({ spec, status }) => {
    const { initContainers = [], containers } = spec
    const states = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
    const completed = states.filter(({ state }) => state.terminated?.exitCode === 0)
    return [...initContainers, ...containers]
      .filter(({ name }) => completed.some((one) => one.name === name))
      .map(({ command = [], securityContext }) => {
        return `${securityContext.runAsUser} ${command.slice(-2).join(' ')}`
      })
  })
}

/** Checks that a command runs, and that its processes have the ids that SCC admission leaves. */
function expectAll(processes: readonly string[], uid: number, command: string): void {
  const found = processes.filter((line) => line.includes(command))
  expect([command, found.length > 0]).toEqual([command, true])
  expect(found.filter((line) => !line.startsWith(`${uid}:0 `))).toEqual([])
}

test(
  'a rollback to cron, and to the last release: no request fails, no link is lost',
  async () => {
    const rollBack = (revision: string) => () => helm(4, 'rollback', NAME, revision, ...wait)
    await change('rollback to cron', rollBack(CRON_REVISION))
    await change('rollback', rollBack(FIRST_REVISION))
  },
  TEST_MS_MAX,
)
