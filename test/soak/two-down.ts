// Two of three Cassandra nodes are down, then Redis too: recently resolved links redirect, others
// get no 404, even if the remaining node does not have them; creates are rejected within the
// deadline, and everything recovers without a restart.
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
  mustReportDown,
  mustReject,
  longestFastRejection,
  waitForStoreState,
} from '../kit/links/store-outage.ts'
import { waitFor } from '../kit/wait-for.ts'

const FULL_LINKS = 200
const FULL_ROUNDS = 5
const HEAL_MS_MAX = 60_000
/** A node takes some 20 s until it has given up others; before, it asks them as well as itself. */
const ALONE_MS_MAX = 60_000
/** Longer than a redirect process keeps a link in memory without asking. */
const AWAY_MS = 5000

interface Link {
  readonly request: LinkRequest
  readonly code: string
}

/** The result of a run. */
export interface TwoNodesDown {
  readonly seenRedirects: number
  readonly unseenRedirects: number
  readonly unseenRefusals: number
  /** Redirects of all of them, once the node that is left knows that it is alone. */
  readonly foundOnReplica: number
  /** Links that the node which was left had never heard of. */
  readonly missed: number
  readonly createsRefused: number
  /** The longest that a create took to be rejected, before its process knew and after. */
  readonly refusalMsMax: number
  readonly knownMsMax: number
  readonly healMs: number
}

/** Takes two nodes down once. Throws what it found. */
export async function killTwoNodes(given: {
  machines: ManyMachines
  links: number
  seed: number
}): Promise<TwoNodesDown> {
  const { machines, links, seed } = given
  const { cassandra, redis } = machines
  const random = createRandom(seed)
  const run = random.int(36 ** 4).toString(36)
  const creators = openHttpClients(machines.creates)
  const readers = openHttpClients(machines.redirects)
  const keeps = random.int(3)
  const down = cassandra.nodes.filter((_, at) => at !== keeps)
  try {
    const seen = await makeLinks(creators.all, `seen-${run}`, links)
    const unseen = await makeLinks(creators.all, `unseen-${run}`, links)
    await followAll(readers.all, seen)
    await Promise.all(down.map((node) => node.kill()))
    const refused = rejectCreates(creators.all, run)
    refused.catch(() => undefined) // thrown where it is awaited
    await followAll(readers.all, seen)
    const others = await askUnseen(readers.all, unseen)
    await mustNotKnow(readers.all, `no-${run}`)
    await redis.kill()
    const endMs = performance.now() + AWAY_MS
    let seenRedirects = 0
    while (performance.now() < endMs) seenRedirects += await followAll(readers.all, seen)
    const foundOnReplica = await findOnReplica(readers.all, unseen)
    const { requests, msMax } = await refused
    const knownMsMax = await longestFastRejection(machines.creates, run)
    await mustReportDown(machines.creates, addressesOf(down))
    // Made while the node that was left hangs: those that come back without it never send them on.
    cassandra.node(keeps).pause()
    await Promise.all([...down.map((node) => node.restart()), redis.restart()])
    const missed = await makeLinks(creators.all, `missed-${run}`, links)
    await Promise.all(down.map((node) => node.kill()))
    cassandra.node(keeps).resume()
    await findOnReplica(readers.all, unseen)
    await askUnseen(readers.all, missed)
    await redis.kill()
    const ofMissed = await askUnseen(readers.all, missed)
    const never = [...unseen, ...missed]
    const healMs = await heal({ machines, down, readers: readers.all, unseen: never, run })
    // What was refused is made by the same key, and what was there is still there.
    const made = await Promise.all(
      requests.map((request) => createWithRetries(creators.all, request)),
    )
    for (const { request, code } of made) {
      if (code === undefined) throw new Error(`${request.key} is taken`)
      for (const reader of readers.all) await expectRedirect(reader, code, request.target)
    }
    await followAll(readers.all, seen)
    return {
      seenRedirects,
      ...others,
      foundOnReplica,
      missed: ofMissed.unseenRefusals,
      createsRefused: requests.length,
      refusalMsMax: Math.round(msMax),
      knownMsMax: Math.round(knownMsMax),
      healMs: Math.round(healMs),
    }
  } finally {
    cassandra.node(keeps).resume()
    creators.close()
    readers.close()
  }
}

async function makeLinks(
  askers: readonly HttpClient[],
  name: string,
  count: number,
): Promise<Link[]> {
  const links: Link[] = []
  const requests = Array.from({ length: count }, (_, i) => {
    const key = `${name}-${String(i)}`
    return { key, target: `https://example.com/${key}` }
  })
  await inParallel(16, requests, async (request) => {
    const { code } = await createWithRetries(askers, request)
    if (code !== undefined) links.push({ request, code })
  })
  return links
}

async function followAll(readers: readonly HttpClient[], links: readonly Link[]): Promise<number> {
  for (const reader of readers) {
    await inParallel(8, links, ({ code, request }) =>
      expectRedirectWithoutRetry(reader, code, request.target),
    )
  }
  return readers.length * links.length
}

/** A link that no reader has seen: its redirect where the node that is left has it, else 503. */
async function askUnseen(readers: readonly HttpClient[], links: readonly Link[]) {
  const sum = { unseenRedirects: 0, unseenRefusals: 0 }
  for (const reader of readers) {
    await inParallel(8, links, async ({ code, request }) => {
      const answer = await reader.send({ path: `/${code}` })
      if (isRedirectTo(answer, request.target)) sum.unseenRedirects++
      else if (answer.status === 503 && problemOf(answer) === 'store-unavailable') {
        sum.unseenRefusals++
      } else throw new Error(`unseen /${code}: ${describeResponse(answer)}`)
    })
  }
  return sum
}

/** Waits until every reader follows them all: one replica's word is enough for that. */
async function findOnReplica(
  readers: readonly HttpClient[],
  links: readonly Link[],
): Promise<number> {
  for (const reader of readers) {
    await inParallel(8, links, ({ code, request }) =>
      waitFor(
        `${code} from one replica`,
        async () => isRedirectTo(await reader.send({ path: `/${code}` }), request.target),
        ALONE_MS_MAX,
      ),
    )
  }
  return readers.length * links.length
}

/** No replica can prove that such a code does not exist: 503. */
async function mustNotKnow(readers: readonly HttpClient[], code: string): Promise<void> {
  for (const reader of readers) {
    const answer = await reader.send({ path: `/${code}` })
    if (answer.status === 503 && headerOf(answer, 'Retry-After') !== undefined) continue
    throw new Error(`/${code}, which nobody made: ${describeResponse(answer)}`)
  }
}

/** Creates without a majority, with keys and without: all are rejected within the deadline. */
async function rejectCreates(askers: readonly HttpClient[], run: string) {
  const requests: LinkRequest[] = [0, 1, 2, 3, 4, 5].map((i) => ({
    key: `refused-${run}-${String(i)}`,
    target: `https://example.com/refused/${run}/${String(i)}`,
    ...(i % 2 === 0 && { alias: `r${String(i)}-${run}` }),
  }))
  const target = `https://example.com/refused/${run}`
  const keyless = [{}, { custom_alias: `k-${run}` }].map((more) =>
    createLinkRequest({ long_url: target, ...more }),
  )
  const asks = [...requests.map(linkRequestOf), ...keyless]
  const each = asks.map((ask, i) => mustReject(askers[i % askers.length], ask))
  return { requests, msMax: Math.max(...(await Promise.all(each))) }
}

function addressesOf(nodes: ManyMachines['cassandra']['nodes']): string[] {
  return nodes.map(({ address }) => address)
}

/** Restarts everything; resolves to the time until every process has recovered. */
async function heal(given: {
  machines: ManyMachines
  down: ManyMachines['cassandra']['nodes']
  readers: readonly HttpClient[]
  unseen: readonly Link[]
  run: string
}): Promise<number> {
  const { machines, down, readers, unseen, run } = given
  await Promise.all([...down.map((node) => node.restart()), machines.redis.restart()])
  const backMs = performance.now()
  let ill = ''
  const isWell = async () => {
    for (const [at, reader] of readers.entries()) {
      const absent = await reader.send({ path: `/no-${run}` })
      ill = `process ${String(at)}: ${describeResponse(absent)}`
      if (absent.status !== 404) return false
      for (const { code, request } of unseen) {
        const answer = await reader.send({ path: `/${code}` })
        ill = `process ${String(at)}: ${describeResponse(answer)}`
        if (!isRedirectTo(answer, request.target)) return false
      }
    }
    return true
  }
  await waitFor('redirects to be well again', isWell, HEAL_MS_MAX).catch((error: unknown) => {
    throw new Error(`not healed: ${ill}`, { cause: error })
  })
  const healMs = performance.now() - backMs
  await waitForStoreState([...machines.creates, ...machines.redirects], 'up')
  for (const { child, role } of [...machines.creates, ...machines.redirects]) {
    if (child.exitCode !== null) throw new Error(`a ${role} ended`)
  }
  return healMs
}

/** One line of figures. */
export function renderTwoNodesDown(sum: TwoNodesDown): string {
  return Object.entries(sum)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
}

/** The full size. */
export async function storm(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const machines = await startManyMachines({ codes: 20_000 })
  try {
    for (let round = 0; round < FULL_ROUNDS; round++) {
      const run = { machines, links: FULL_LINKS, seed: given.seed + round }
      given.log(renderTwoNodesDown(await killTwoNodes(run)))
      const hung = await hangTwoNodes(machines, `h${String(round)}`)
      given.log(`two nodes hang: ${JSON.stringify(hung)}`)
      const links = await killAllNodes(machines, `c${String(round)}`)
      given.log(`all nodes killed at once: ${String(links)} links of ${String(links)} found`)
    }
  } finally {
    await machines.stop()
  }
}
