// Creates while a Cassandra node is killed, and while its responses are lost: every 201 redirects
// to its own target, no alias has two owners, no key two links, no code two keys.
import type { HttpClient } from '../kit/http/http-client.ts'
import {
  createWithRetries,
  inParallel,
  expectRedirect,
  openHttpClients,
  type CreateResult,
  type LinkRequest,
} from '../kit/http/machine-clients.ts'
import { type ManyMachines, startManyMachines } from '../kit/processes/many-machines.ts'
import { createRandom, type Random } from '../kit/random.ts'

const FLIGHT = 64
const FULL_CREATES = 5000
const FULL_LOST_RATIO = 0.05
const CONTENDERS = 4

/** The fault of the cluster during the middle third of the creates. */
export type Trouble = 'killed node' | 'lost answers'

/** The result of a run. */
export interface NodeKill {
  readonly told: number
  readonly taken: number
  readonly repeats: number
  /** Claims whose outcome was unknown and then resolved. */
  readonly resolved: number
  readonly lost: number
  readonly seconds: number
}

/** Runs so many creates. Throws what it found. */
export async function createThroughTrouble(given: {
  machines: ManyMachines
  trouble: Trouble
  creates: number
  /** Of the answers to conditional writes, while answers get lost. */
  lostRatio: number
  seed: number
}): Promise<NodeKill> {
  const { machines, trouble, creates, lostRatio, seed } = given
  const startedMs = performance.now()
  const random = createRandom(seed)
  const requests = makeWishes(creates, random)
  const before = await resolvedOf(machines)
  const { all: askers, close } = openHttpClients(machines.creates)
  const all: CreateResult[] = []
  const run = troubleOf(machines, trouble, { lostRatio, random })
  const steps = new Map([
    [Math.floor(requests.length / 3), run.begin],
    [Math.floor((requests.length * 2) / 3), run.end],
  ])
  const stepping: Promise<void>[] = []
  try {
    await inParallel(FLIGHT, requests, async (request) => {
      all.push(await createWithRetries(askers, request))
      const step = steps.get(all.length)
      if (step !== undefined) stepping.push(step())
    })
    await Promise.all(stepping)
    await checkAll({ machines, askers, all })
  } finally {
    await Promise.allSettled(stepping)
    close()
  }
  return {
    told: all.filter(({ code }) => code !== undefined).length,
    taken: all.filter(({ code }) => code === undefined).length,
    repeats: all.reduce((sum, { retries }) => sum + retries, 0),
    resolved: (await resolvedOf(machines)) - before,
    lost: run.lost(),
    seconds: Math.round((performance.now() - startedMs) / 1000),
  }
}

/** What is wanted: links with and without life, some keys twice at once, contended aliases. */
function makeWishes(count: number, random: Random): LinkRequest[] {
  const run = random.int(36 ** 3).toString(36)
  const requests: LinkRequest[] = []
  while (requests.length < count) {
    const i = requests.length
    const key = `${run}-${String(i)}`
    const request = {
      key,
      target: `https://example.com/${key}?q=%7e`,
      ...(random.chance(0.3) && { ttlDays: 1 + random.int(3650) }),
    }
    if (random.chance(0.05)) {
      const alias = `${run}-${i.toString(36)}`
      for (let c = 0; c < CONTENDERS; c++) {
        const own = {
          key: `${key}-${String(c)}`,
          target: `${request.target}&c=${String(c)}`,
          alias,
        }
        requests.push(own)
      }
    } else {
      requests.push(request)
      if (random.chance(0.2)) requests.push(request)
    }
  }
  return requests
}

interface Run {
  readonly begin: () => Promise<void>
  readonly end: () => Promise<void>
  readonly lost: () => number
}

function troubleOf(
  { cassandra }: ManyMachines,
  trouble: Trouble,
  { lostRatio, random }: { lostRatio: number; random: Random },
): Run {
  const proxies = cassandra.nodes.map((_, at) => cassandra.proxy(at))
  const lostSoFar = () => proxies.reduce((sum, proxy) => sum + proxy.droppedResponses(), 0)
  const before = lostSoFar()
  if (trouble === 'lost answers') {
    const isSuch = (message: Buffer) => message.includes('[applied]') && random.chance(lostRatio)
    return {
      begin: () => {
        for (const proxy of proxies) proxy.dropResponses({ isSuch })
        return Promise.resolve()
      },
      end: async () => {
        for (const proxy of proxies) await proxy.heal()
      },
      lost: () => lostSoFar() - before,
    }
  }
  const node = cassandra.node(random.int(cassandra.nodes.length))
  return { begin: () => node.kill(), end: () => node.restart(), lost: () => 0 }
}

async function resolvedOf({ creates }: ManyMachines): Promise<number> {
  const label = 'result="unknown-resolved"'
  const counts = creates.map((one) => one.metric('curtail_code_claims_total', label))
  return (await Promise.all(counts)).reduce((sum, count) => sum + count)
}

async function checkAll(given: {
  machines: ManyMachines
  askers: readonly HttpClient[]
  all: readonly CreateResult[]
}): Promise<void> {
  const { machines, askers, all } = given
  const codes = new Map<string, string>()
  const keys = new Map<string, string>()
  for (const { request, code } of all) {
    if (code === undefined) {
      if (request.alias === undefined) throw new Error(`${request.key}: 409 without an alias`)
      continue
    }
    const { key, alias } = request
    if ((codes.get(code) ?? key) !== key) throw new Error(`${code} belongs to two keys`)
    if ((keys.get(key) ?? code) !== code) throw new Error(`${key} has two links`)
    if (alias !== undefined && alias !== code) throw new Error(`${alias} was made as ${code}`)
    codes.set(code, key)
    keys.set(key, code)
  }
  const lost = all.filter(({ request }) => request.alias !== undefined && !codes.has(request.alias))
  if (lost[0] !== undefined) throw new Error(`no request won ${String(lost[0].request.alias)}`)
  const { all: readers, close } = openHttpClients(machines.redirects)
  try {
    await inParallel(16, all, async ({ request, code }) => {
      if (code === undefined) return
      for (const reader of readers) await expectRedirect(reader, code, request.target)
      const again = await createWithRetries(askers, request)
      if (again.code !== code) throw new Error(`${request.key} is now ${String(again.code)}`)
      if (!again.isReplay) throw new Error(`${request.key} was created twice`)
    })
  } finally {
    close()
  }
}

/** One line of figures. */
export function renderNodeKill(trouble: Trouble, sum: NodeKill): string {
  return (
    `${trouble}: ${String(sum.told)} × 201, ${String(sum.taken)} × 409, ` +
    `${String(sum.repeats)} repeats at 503, ${String(sum.lost)} answers lost, ` +
    `${String(sum.resolved)} unknown claims resolved, ${String(sum.seconds)} s`
  )
}

/** The full size. */
export async function storm(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const machines = await startManyMachines({ codes: 4 * FULL_CREATES })
  try {
    for (const trouble of ['killed node', 'lost answers'] as const) {
      const size = { creates: FULL_CREATES, lostRatio: FULL_LOST_RATIO }
      const sum = await createThroughTrouble({ machines, trouble, ...size, seed: given.seed })
      given.log(renderNodeKill(trouble, sum))
      if (trouble === 'lost answers' && sum.resolved === 0) {
        throw new Error('no claim of unknown outcome was resolved')
      }
    }
  } finally {
    await machines.stop()
  }
}
