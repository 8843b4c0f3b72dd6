// Two of three Cassandra nodes are down, then Redis too: recently resolved links redirect, others
// get no 404, even if the remaining node does not have them; creates are rejected within the
// deadline, and every process recovers without a restart.
import { createLinkRequest } from '../kit/http/client.ts'
import type { HttpClient } from '../kit/http/http-client.ts'
import {
  linkRequestOf,
  createWithRetries,
  inParallel,
  isRedirectTo,
  expectRedirectWithoutRetry,
  expectRedirect,
  openHttpClients,
  problemOf,
  describeResponse,
  type LinkRequest,
} from '../kit/http/machine-clients.ts'
import { type ManyMachines, startManyMachines } from '../kit/processes/many-machines.ts'
import { createRandom } from '../kit/random.ts'
import { headerOf } from '../kit/http/raw-http.ts'
import {
  hangTwoNodes,
  killAllNodes,
  mustReportNodes,
  mustReject,
  longestFastRejection,
  waitForStoreState,
} from '../kit/links/store-outage.ts'
import { waitFor } from '../kit/wait-for.ts'

const FULL_LINKS = 200
const FULL_ROUNDS = 5
const RECOVERY_MS_MAX = 60_000
/** A node marks the others down after about 20 s; until then it also reads from them. */
const SINGLE_NODE_MS_MAX = 60_000
/** Longer than a redirect process serves a link from memory without a read. */
const UNAVAILABLE_MS = 5000

interface Link {
  readonly request: LinkRequest
  readonly code: string
}

/** The result of a run. */
export interface TwoNodesDown {
  readonly resolvedRedirects: number
  readonly unresolvedRedirects: number
  readonly unresolvedRejections: number
  /** Redirects of those links, after the remaining node marked the others down. */
  readonly redirectedFromReplica: number
  /** Rejected redirects of links that the remaining node does not have. */
  readonly missed: number
  readonly createsRejected: number
  /** The longest rejection of a create, before its process reported the nodes down, and after. */
  readonly rejectionMsMax: number
  readonly fastMsMax: number
  readonly recoveryMs: number
}

/** Takes two nodes down once. Throws on the first violation. */
export async function killTwoNodes(given: {
  machines: ManyMachines
  links: number
  seed: number
}): Promise<TwoNodesDown> {
  const { machines, links, seed } = given
  const { cassandra, redis } = machines
  const random = createRandom(seed)
  const run = random.int(36 ** 4).toString(36)
  const createClients = openHttpClients(machines.creates)
  const readers = openHttpClients(machines.redirects)
  const remaining = random.int(3)
  const down = cassandra.nodes.filter((_, at) => at !== remaining)
  try {
    const resolved = await createLinks(createClients.all, `resolved-${run}`, links)
    const unresolved = await createLinks(createClients.all, `unresolved-${run}`, links)
    await redirectAll(readers.all, resolved)
    await Promise.all(down.map((node) => node.kill()))
    const rejections = rejectCreates(createClients.all, run)
    rejections.catch(() => undefined) // thrown where it is awaited
    await redirectAll(readers.all, resolved)
    const unresolvedCounts = await redirectUnresolved(readers.all, unresolved)
    await expectUnavailable(readers.all, `no-${run}`)
    await redis.kill()
    const endMs = performance.now() + UNAVAILABLE_MS
    let resolvedRedirects = 0
    while (performance.now() < endMs) resolvedRedirects += await redirectAll(readers.all, resolved)
    const redirectedFromReplica = await redirectFromReplica(readers.all, unresolved)
    const { requests, msMax } = await rejections
    const fastMsMax = await longestFastRejection(machines.creates, run)
    const processes = [...machines.creates, ...machines.redirects]
    await mustReportNodes(processes, 'down', addressesOf(down))
    // Created while the remaining node hangs: the others stop before they can send it their hints.
    cassandra.node(remaining).pause()
    await Promise.all([...down.map((node) => node.restart()), redis.restart()])
    const missed = await createLinks(createClients.all, `missed-${run}`, links)
    await Promise.all(down.map((node) => node.kill()))
    cassandra.node(remaining).resume()
    await redirectFromReplica(readers.all, unresolved)
    await redirectUnresolved(readers.all, missed)
    await redis.kill()
    const ofMissed = await redirectUnresolved(readers.all, missed)
    const stopped = { machines, down, readers: readers.all, run }
    const recoveryMs = await restoreNodes({ ...stopped, links: [...unresolved, ...missed] })
    await mustReportNodes(processes, 'up', addressesOf(down))
    // A retry of a rejected create succeeds, and the earlier links still exist.
    const created = await Promise.all(
      requests.map((request) => createWithRetries(createClients.all, request)),
    )
    for (const { request, code } of created) {
      if (code === undefined) throw new Error(`${request.key} is taken`)
      for (const reader of readers.all) await expectRedirect(reader, code, request.target)
    }
    await redirectAll(readers.all, resolved)
    return {
      resolvedRedirects,
      ...unresolvedCounts,
      redirectedFromReplica,
      missed: ofMissed.unresolvedRejections,
      createsRejected: requests.length,
      rejectionMsMax: Math.round(msMax),
      fastMsMax: Math.round(fastMsMax),
      recoveryMs: Math.round(recoveryMs),
    }
  } finally {
    cassandra.node(remaining).resume()
    createClients.close()
    readers.close()
  }
}

async function createLinks(
  createClients: readonly HttpClient[],
  name: string,
  count: number,
): Promise<Link[]> {
  const links: Link[] = []
  const requests = Array.from({ length: count }, (_, i) => {
    const key = `${name}-${String(i)}`
    return { key, target: `https://example.com/${key}` }
  })
  await inParallel(16, requests, async (request) => {
    const { code } = await createWithRetries(createClients, request)
    if (code !== undefined) links.push({ request, code })
  })
  return links
}

async function redirectAll(
  readers: readonly HttpClient[],
  links: readonly Link[],
): Promise<number> {
  for (const reader of readers) {
    await inParallel(8, links, ({ code, request }) =>
      expectRedirectWithoutRetry(reader, code, request.target),
    )
  }
  return readers.length * links.length
}

/** Counts redirects, if the remaining node has the link, and rejections with 503. */
async function redirectUnresolved(readers: readonly HttpClient[], links: readonly Link[]) {
  const sum = { unresolvedRedirects: 0, unresolvedRejections: 0 }
  for (const reader of readers) {
    await inParallel(8, links, async ({ code, request }) => {
      const response = await reader.send({ path: `/${code}` })
      if (isRedirectTo(response, request.target)) sum.unresolvedRedirects++
      else if (response.status === 503 && problemOf(response) === 'store-unavailable') {
        sum.unresolvedRejections++
      } else throw new Error(`unresolved /${code}: ${describeResponse(response)}`)
    })
  }
  return sum
}

/** Waits until every process redirects every link, which it reads from one replica. */
async function redirectFromReplica(
  readers: readonly HttpClient[],
  links: readonly Link[],
): Promise<number> {
  for (const reader of readers) {
    await inParallel(8, links, ({ code, request }) =>
      waitFor(
        `${code} from one replica`,
        async () => isRedirectTo(await reader.send({ path: `/${code}` }), request.target),
        SINGLE_NODE_MS_MAX,
      ),
    )
  }
  return readers.length * links.length
}

/** Expects 503, because one replica cannot prove that a code does not exist. */
async function expectUnavailable(readers: readonly HttpClient[], code: string): Promise<void> {
  for (const reader of readers) {
    const response = await reader.send({ path: `/${code}` })
    if (response.status === 503 && headerOf(response, 'Retry-After') !== undefined) continue
    throw new Error(`/${code}, which does not exist: ${describeResponse(response)}`)
  }
}

/** Sends creates with and without keys; without a quorum all must be rejected in the deadline. */
async function rejectCreates(createClients: readonly HttpClient[], run: string) {
  const requests: LinkRequest[] = [0, 1, 2, 3, 4, 5].map((i) => ({
    key: `rejected-${run}-${String(i)}`,
    target: `https://example.com/rejected/${run}/${String(i)}`,
    ...(i % 2 === 0 && { alias: `r${String(i)}-${run}` }),
  }))
  const target = `https://example.com/rejected/${run}`
  const withoutKey = [{}, { custom_alias: `k-${run}` }].map((more) =>
    createLinkRequest({ long_url: target, ...more }),
  )
  const httpRequests = [...requests.map(linkRequestOf), ...withoutKey]
  const each = httpRequests.map((request, i) =>
    mustReject(createClients[i % createClients.length], request),
  )
  return { requests, msMax: Math.max(...(await Promise.all(each))) }
}

function addressesOf(nodes: ManyMachines['cassandra']['nodes']): string[] {
  return nodes.map(({ address }) => address)
}

/** Restarts the nodes and Redis; resolves to the time until every process has recovered. */
async function restoreNodes(given: {
  machines: ManyMachines
  down: ManyMachines['cassandra']['nodes']
  readers: readonly HttpClient[]
  links: readonly Link[]
  run: string
}): Promise<number> {
  const { machines, down, readers, links, run } = given
  await Promise.all([...down.map((node) => node.restart()), machines.redis.restart()])
  const restartedMs = performance.now()
  let problem = ''
  const haveRecovered = async () => {
    for (const [at, reader] of readers.entries()) {
      const absent = await reader.send({ path: `/no-${run}` })
      problem = `process ${String(at)}: ${describeResponse(absent)}`
      if (absent.status !== 404) return false
      for (const { code, request } of links) {
        const response = await reader.send({ path: `/${code}` })
        problem = `process ${String(at)}: ${describeResponse(response)}`
        if (!isRedirectTo(response, request.target)) return false
      }
    }
    return true
  }
  await waitFor('redirects to recover', haveRecovered, RECOVERY_MS_MAX).catch((error: unknown) => {
    throw new Error(`not recovered: ${problem}`, { cause: error })
  })
  const recoveryMs = performance.now() - restartedMs
  await waitForStoreState([...machines.creates, ...machines.redirects], 'up')
  for (const { child, role } of [...machines.creates, ...machines.redirects]) {
    if (child.exitCode !== null) throw new Error(`a ${role} process exited`)
  }
  return recoveryMs
}

/** The figures on one line. */
export function renderTwoNodesDown(sum: TwoNodesDown): string {
  return Object.entries(sum)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
}

/** Runs the test at full size. */
export async function run(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const machines = await startManyMachines({ codes: 20_000 })
  try {
    for (let round = 0; round < FULL_ROUNDS; round++) {
      const run = { machines, links: FULL_LINKS, seed: given.seed + round }
      given.log(renderTwoNodesDown(await killTwoNodes(run)))
      const hung = await hangTwoNodes(machines, `h${String(round)}`)
      given.log(`two nodes hang: ${JSON.stringify(hung)}`)
      const links = await killAllNodes(machines, `c${String(round)}`)
      given.log(`all nodes killed simultaneously: ${String(links)} links of ${String(links)} found`)
    }
  } finally {
    await machines.stop()
  }
}
