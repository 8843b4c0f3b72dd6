// Two of three nodes of Cassandra dead, then Redis too: links seen lately redirect, of others
// nobody says 404, not even where the node that is left never heard of them; creates are refused in
// time, and all of it heals without a restart.
import { createAsk } from '../component/client.ts'
import type { Asker } from '../component/asker.ts'
import {
  askOf,
  createUntilTold,
  inParallel,
  leadsTo,
  mustLeadAtOnce,
  mustLeadTo,
  openAskers,
  problemOf,
  renderAnswer,
  type Wish,
} from '../component/machine-clients.ts'
import { type ManyMachines, startManyMachines } from '../component/many-machines.ts'
import { createRandom } from '../component/random.ts'
import { headerOf } from '../component/raw-http.ts'
import {
  hangTwoNodes,
  killAllNodes,
  mustHaveSeenDown,
  mustReject,
  rejectedAtOnce,
  untilStoreIs,
} from '../component/store-outage.ts'
import { waitFor } from '../component/wait-for.ts'

const STORM_LINKS = 200
const STORM_ROUNDS = 5
const HEAL_MS_MAX = 60_000
/** A node takes some 20 s until it has given up others; before, it asks them as well as itself. */
const ALONE_MS_MAX = 60_000
/** Longer than a redirect process keeps a link in memory without asking. */
const AWAY_MS = 5000

interface Link {
  readonly wish: Wish
  readonly code: string
}

/** What a run gave. */
export interface TwoDown {
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
export async function takeTwoDown(given: {
  machines: ManyMachines
  links: number
  seed: number
}): Promise<TwoDown> {
  const { machines, links, seed } = given
  const { cassandra, redis } = machines
  const random = createRandom(seed)
  const run = random.int(36 ** 4).toString(36)
  const creators = openAskers(machines.creates)
  const readers = openAskers(machines.redirects)
  const keeps = random.int(3)
  const down = cassandra.nodes.filter((_, at) => at !== keeps)
  try {
    const seen = await makeLinks(creators.all, `seen-${run}`, links)
    const unseen = await makeLinks(creators.all, `unseen-${run}`, links)
    await followAll(readers.all, seen)
    await Promise.all(down.map((node) => node.kill()))
    const refused = refuseCreates(creators.all, run)
    refused.catch(() => undefined) // thrown where it is awaited
    await followAll(readers.all, seen)
    const others = await askUnseen(readers.all, unseen)
    await mustNotKnow(readers.all, `no-${run}`)
    await redis.kill()
    const endMs = performance.now() + AWAY_MS
    let seenRedirects = 0
    while (performance.now() < endMs) seenRedirects += await followAll(readers.all, seen)
    const foundOnReplica = await findOnReplica(readers.all, unseen)
    const { wishes, msMax } = await refused
    const knownMsMax = await rejectedAtOnce(machines.creates, run)
    await mustHaveSeenDown(machines.creates, addressesOf(down))
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
    const made = await Promise.all(wishes.map((wish) => createUntilTold(creators.all, wish)))
    for (const { wish, code } of made) {
      if (code === undefined) throw new Error(`${wish.key} is taken`)
      for (const reader of readers.all) await mustLeadTo(reader, code, wish.target)
    }
    await followAll(readers.all, seen)
    return {
      seenRedirects,
      ...others,
      foundOnReplica,
      missed: ofMissed.unseenRefusals,
      createsRefused: wishes.length,
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

async function makeLinks(askers: readonly Asker[], name: string, count: number): Promise<Link[]> {
  const links: Link[] = []
  const wishes = Array.from({ length: count }, (_, i) => {
    const key = `${name}-${String(i)}`
    return { key, target: `https://example.com/${key}` }
  })
  await inParallel(16, wishes, async (wish) => {
    const { code } = await createUntilTold(askers, wish)
    if (code !== undefined) links.push({ wish, code })
  })
  return links
}

async function followAll(readers: readonly Asker[], links: readonly Link[]): Promise<number> {
  for (const reader of readers) {
    await inParallel(8, links, ({ code, wish }) => mustLeadAtOnce(reader, code, wish.target))
  }
  return readers.length * links.length
}

/** A link that no reader has seen: its redirect where the node that is left has it, else 503. */
async function askUnseen(readers: readonly Asker[], links: readonly Link[]) {
  const sum = { unseenRedirects: 0, unseenRefusals: 0 }
  for (const reader of readers) {
    await inParallel(8, links, async ({ code, wish }) => {
      const answer = await reader.ask({ path: `/${code}` })
      if (leadsTo(answer, wish.target)) sum.unseenRedirects++
      else if (answer.status === 503 && problemOf(answer) === 'store-unavailable') {
        sum.unseenRefusals++
      } else throw new Error(`unseen /${code}: ${renderAnswer(answer)}`)
    })
  }
  return sum
}

/** Waits until every reader follows them all: one replica's word is enough for that. */
async function findOnReplica(readers: readonly Asker[], links: readonly Link[]): Promise<number> {
  for (const reader of readers) {
    await inParallel(8, links, ({ code, wish }) =>
      waitFor(
        `${code} from one replica`,
        async () => leadsTo(await reader.ask({ path: `/${code}` }), wish.target),
        ALONE_MS_MAX,
      ),
    )
  }
  return readers.length * links.length
}

/** Nobody can know whether such a code exists. */
async function mustNotKnow(readers: readonly Asker[], code: string): Promise<void> {
  for (const reader of readers) {
    const answer = await reader.ask({ path: `/${code}` })
    if (answer.status === 503 && headerOf(answer, 'Retry-After') !== undefined) continue
    throw new Error(`/${code}, which nobody made: ${renderAnswer(answer)}`)
  }
}

/** Creates while no majority is there, with keys and without: every one is refused in time. */
async function refuseCreates(askers: readonly Asker[], run: string) {
  const wishes: Wish[] = [0, 1, 2, 3, 4, 5].map((i) => ({
    key: `refused-${run}-${String(i)}`,
    target: `https://example.com/refused/${run}/${String(i)}`,
    ...(i % 2 === 0 && { alias: `r${String(i)}-${run}` }),
  }))
  const target = `https://example.com/refused/${run}`
  const keyless = [{}, { custom_alias: `k-${run}` }].map((more) =>
    createAsk({ long_url: target, ...more }),
  )
  const asks = [...wishes.map(askOf), ...keyless]
  const each = asks.map((ask, i) => mustReject(askers[i % askers.length], ask))
  return { wishes, msMax: Math.max(...(await Promise.all(each))) }
}

function addressesOf(nodes: ManyMachines['cassandra']['nodes']): string[] {
  return nodes.map(({ address }) => address)
}

/** Brings everything back; how long it took from then on until every process was well again. */
async function heal(given: {
  machines: ManyMachines
  down: ManyMachines['cassandra']['nodes']
  readers: readonly Asker[]
  unseen: readonly Link[]
  run: string
}): Promise<number> {
  const { machines, down, readers, unseen, run } = given
  await Promise.all([...down.map((node) => node.restart()), machines.redis.restart()])
  const backMs = performance.now()
  let ill = ''
  const isWell = async () => {
    for (const [at, reader] of readers.entries()) {
      const absent = await reader.ask({ path: `/no-${run}` })
      ill = `process ${String(at)}: ${renderAnswer(absent)}`
      if (absent.status !== 404) return false
      for (const { code, wish } of unseen) {
        const answer = await reader.ask({ path: `/${code}` })
        ill = `process ${String(at)}: ${renderAnswer(answer)}`
        if (!leadsTo(answer, wish.target)) return false
      }
    }
    return true
  }
  await waitFor('redirects to be well again', isWell, HEAL_MS_MAX).catch((error: unknown) => {
    throw new Error(`not healed: ${ill}`, { cause: error })
  })
  const healMs = performance.now() - backMs
  await untilStoreIs([...machines.creates, ...machines.redirects], 'up')
  for (const { child, role } of [...machines.creates, ...machines.redirects]) {
    if (child.exitCode !== null) throw new Error(`a ${role} ended`)
  }
  return healMs
}

/** One line of figures. */
export function renderTwoDown(sum: TwoDown): string {
  return Object.entries(sum)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
}

/** The full size. */
export async function storm(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const machines = await startManyMachines({ codes: 20_000 })
  try {
    for (let round = 0; round < STORM_ROUNDS; round++) {
      const run = { machines, links: STORM_LINKS, seed: given.seed + round }
      given.log(renderTwoDown(await takeTwoDown(run)))
      const hung = await hangTwoNodes(machines, `h${String(round)}`)
      given.log(`two nodes hang: ${JSON.stringify(hung)}`)
      const links = await killAllNodes(machines, `c${String(round)}`)
      given.log(`all nodes killed at once: ${String(links)} links of ${String(links)} found`)
    }
  } finally {
    await machines.stop()
  }
}
