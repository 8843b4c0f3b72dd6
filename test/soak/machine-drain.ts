// SIGTERM to a `create` and to a `redirect` process under load: every accepted request gets a
// correct response; then the process exits with 0, and closes its drivers after the last response.
import { createLinkRequest, codeOf } from '../kit/http/client.ts'
import { isRedirectTo, expectRedirect, openHttpClients } from '../kit/http/machine-clients.ts'
import {
  type Machine,
  type ManyMachines,
  startManyMachines,
} from '../kit/processes/many-machines.ts'
import {
  type RawResponse,
  type RawRequest,
  headerOf,
  openConnection,
  type RawConnection,
} from '../kit/http/raw-http.ts'
import { withinDeadline, waitFor } from '../kit/wait-for.ts'

const CLIENTS = 32
const FULL_ROUNDS = 20
/** Requests that are answered before the signal. */
const WARM = 200
const END_MS_MAX = 40_000

/** The result of a run. */
export interface MachineDrain {
  readonly answered: number
  /** Responses after the signal. */
  readonly late: number
  readonly endMs: number
}

/** Stops one more process of a role under load. Throws what it found. */
export async function drainMachine(
  machines: ManyMachines,
  role: Machine['role'],
): Promise<MachineDrain> {
  const machine = await machines.startMachine(role)
  const readers = openHttpClients(machines.redirects)
  const made: { code: string; target: string }[] = []
  const load = role === 'create' ? createLoad(made) : await redirectLoad(machines)
  let answered = 0
  let late = 0
  let isEnding = false
  const onAnswer = () => {
    answered++
    if (isEnding) late++
  }
  try {
    const connections = await Promise.all(
      Array.from({ length: CLIENTS }, () => openConnection(machine.port)),
    )
    const { check, next } = load
    await waitFor('a first good answer', async () => {
      const [first] = connections
      const ask = next()
      if (first === undefined) throw new Error('there is no connection')
      const answer = await first.exchange(ask)
      if (answer.status === 503) return false // a process that is new on a busy machine
      check(ask, answer)
      return true
    })
    const working = connections.map((connection) => work(connection, { ...load, onAnswer }))
    await Promise.race([waitFor('a load', () => answered >= WARM), Promise.all(working)])
    isEnding = true
    const signalledMs = performance.now()
    machine.child.kill('SIGTERM')
    await withinDeadline('the last answers', Promise.all(working), END_MS_MAX)
    const how = await withinDeadline('the end', machine.exited, END_MS_MAX)
    const said = machine.log.map(({ msg }) => msg)
    if (how !== 0) throw new Error(`${role} ended with ${String(how)}: ${said.join(', ')}`)
    if (said.at(-1) !== 'stopped') throw new Error(`${role} said ${said.join(', ')}`)
    const ills = machine.log.filter(({ level }) => level === 'error' || level === 'fatal')
    if (ills.length > 0) throw new Error(`${role} said ${JSON.stringify(ills)}`)
    for (const { code, target } of made) {
      for (const reader of readers.all) await expectRedirect(reader, code, target)
    }
    return { answered, late, endMs: Math.round(performance.now() - signalledMs) }
  } finally {
    readers.close()
  }
}

interface Load {
  readonly next: () => RawRequest
  /** Throws if the response is not the expected one. */
  readonly check: (ask: RawRequest, answer: RawResponse) => void
}

function createLoad(made: { code: string; target: string }[]): Load {
  const run = Math.floor(Math.random() * 2 ** 31).toString(36)
  let requests = 0
  return {
    next: () => createLinkRequest({ long_url: `https://example.com/${run}/${String(requests++)}` }),
    check(ask, answer) {
      const { long_url: target } = JSON.parse(String(ask.body)) as { long_url: string }
      made.push({ code: codeOf(answer), target })
    },
  }
}

async function redirectLoad({ creates }: ManyMachines): Promise<Load> {
  const { all, close } = openHttpClients(creates)
  const target = 'https://example.com/drained'
  const answer = await all[0]?.send(createLinkRequest({ long_url: target }))
  close()
  if (answer === undefined) throw new Error('there is nobody to ask')
  const code = codeOf(answer)
  let requests = 0
  return {
    // Some are in memory, others are looked up through cache and store.
    next: () => ({ path: requests++ % 4 === 0 ? `/d${requests.toString(36)}` : `/${code}` }),
    check({ path }, got) {
      // On a busy machine the look-up of a code that is not there may run out of its deadline.
      const isAbsent = got.status === 404 || got.status === 503
      const isWell = path === `/${code}` ? isRedirectTo(got, target) : isAbsent
      if (!isWell) throw new Error(`${path}: ${String(got.status)}`)
    },
  }
}

/** Asks without pause until it is told that its connection closes. Throws at a lost request. */
async function work(
  connection: RawConnection,
  { next, check, onAnswer }: Load & { onAnswer: () => void },
): Promise<void> {
  for (;;) {
    const ask = next()
    const answer = await connection.exchange(ask)
    check(ask, answer)
    onAnswer()
    if (headerOf(answer, 'Connection') === 'close') return
  }
}

/** One line of figures. */
export function renderDrain(role: string, sum: MachineDrain): string {
  const { answered, late, endMs } = sum
  const end = `ended in ${String(endMs)} ms`
  return `${role}: ${String(answered)} answered, ${String(late)} after SIGTERM, ${end}`
}

/** The full size. */
export async function storm({ log }: { log: (line: string) => void }): Promise<void> {
  const machines = await startManyMachines({ codes: 50_000 })
  try {
    for (let round = 0; round < FULL_ROUNDS; round++) {
      for (const role of ['create', 'redirect'] as const) {
        log(renderDrain(role, await drainMachine(machines, role)))
      }
    }
  } finally {
    await machines.stop()
  }
}
