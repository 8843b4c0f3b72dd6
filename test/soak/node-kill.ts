// Creates while a Cassandra node is killed, and while its responses are lost: every created link
// redirects to its own target, no alias has two owners, no key two links, no code two keys.
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
export type ClusterFault = 'killed node' | 'lost responses'

/** The result of a run. */
export interface NodeKill {
  readonly created: number
  readonly taken: number
  readonly retries: number
  /** Claims whose outcome was unknown and then resolved. */
  readonly resolved: number
  readonly lost: number
  readonly seconds: number
}

/** Runs `creates` creates. Throws on the first violation. */
export async function createDuringClusterFault(given: {
  machines: ManyMachines
  fault: ClusterFault
  creates: number
  /** The share of lost responses to conditional writes, for `lost responses`. */
  lostRatio: number
  seed: number
}): Promise<NodeKill> {
  const { machines, fault, creates, lostRatio, seed } = given
  const startedMs = performance.now()
  const random = createRandom(seed)
  const requests = linkRequests(creates, random)
  const before = await resolvedOf(machines)
  const { all: createClients, close } = openHttpClients(machines.creates)
  const all: CreateResult[] = []
  const injection = startableFaultOf(machines, fault, { lostRatio, random })
  const steps = new Map([
    [Math.floor(requests.length / 3), injection.start],
    [Math.floor((requests.length * 2) / 3), injection.stop],
  ])
  const stepping: Promise<void>[] = []
  try {
    await inParallel(FLIGHT, requests, async (request) => {
      all.push(await createWithRetries(createClients, request))
      const step = steps.get(all.length)
      if (step !== undefined) stepping.push(step())
    })
    await Promise.all(stepping)
    await checkAll({ machines, createClients, all })
  } finally {
    await Promise.allSettled(stepping)
    close()
  }
  return {
    created: all.filter(({ code }) => code !== undefined).length,
    taken: all.filter(({ code }) => code === undefined).length,
    retries: all.reduce((sum, { retries }) => sum + retries, 0),
    resolved: (await resolvedOf(machines)) - before,
    lost: injection.lost(),
    seconds: Math.round((performance.now() - startedMs) / 1000),
  }
}

/** Links with and without a TTL, some keys twice concurrently, and contended aliases. */
function linkRequests(count: number, random: Random): LinkRequest[] {
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

interface StartableFault {
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
  readonly lost: () => number
}

function startableFaultOf(
  { cassandra }: ManyMachines,
  fault: ClusterFault,
  { lostRatio, random }: { lostRatio: number; random: Random },
): StartableFault {
  const proxies = cassandra.nodes.map((_, at) => cassandra.proxy(at))
  const lostSoFar = () => proxies.reduce((sum, proxy) => sum + proxy.droppedResponses(), 0)
  const before = lostSoFar()
  if (fault === 'lost responses') {
    const matches = (message: Buffer) => message.includes('[applied]') && random.chance(lostRatio)
    return {
      start: () => {
        for (const proxy of proxies) proxy.dropResponses({ matches })
        return Promise.resolve()
      },
      stop: async () => {
        for (const proxy of proxies) await proxy.heal()
      },
      lost: () => lostSoFar() - before,
    }
  }
  const node = cassandra.node(random.int(cassandra.nodes.length))
  return { start: () => node.kill(), stop: () => node.restart(), lost: () => 0 }
}

async function resolvedOf({ creates }: ManyMachines): Promise<number> {
  const label = 'result="unknown-resolved"'
  const counts = creates.map((process) => process.metric('curtail_code_claims_total', label))
  return (await Promise.all(counts)).reduce((sum, count) => sum + count)
}

async function checkAll(given: {
  machines: ManyMachines
  createClients: readonly HttpClient[]
  all: readonly CreateResult[]
}): Promise<void> {
  const { machines, createClients, all } = given
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
    if (alias !== undefined && alias !== code) throw new Error(`${alias} was created as ${code}`)
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
      const replay = await createWithRetries(createClients, request)
      if (replay.code !== code) throw new Error(`${request.key} is now ${String(replay.code)}`)
      if (!replay.isReplay) throw new Error(`${request.key} was created twice`)
    })
  } finally {
    close()
  }
}

/** The figures on one line. */
export function renderNodeKill(fault: ClusterFault, sum: NodeKill): string {
  return (
    `${fault}: ${String(sum.created)} × 201, ${String(sum.taken)} × 409, ` +
    `${String(sum.retries)} retries after 503, ${String(sum.lost)} responses lost, ` +
    `${String(sum.resolved)} unknown claims resolved, ${String(sum.seconds)} s`
  )
}

/** Runs the test at full size. */
export async function run(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const machines = await startManyMachines({ codes: 4 * FULL_CREATES })
  try {
    for (const fault of ['killed node', 'lost responses'] as const) {
      const size = { creates: FULL_CREATES, lostRatio: FULL_LOST_RATIO }
      const sum = await createDuringClusterFault({ machines, fault, ...size, seed: given.seed })
      given.log(renderNodeKill(fault, sum))
      if (fault === 'lost responses' && sum.resolved === 0) {
        throw new Error('no claim of unknown outcome was resolved')
      }
    }
  } finally {
    await machines.stop()
  }
}
