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

/** Few creates at a time, so that they meet their deadline on a busy machine. */
const CLIENTS = { create: 16, redirect: 32 }
const FULL_ROUNDS = 20
/** Responses before the signal. */
const WARM_UP_RESPONSES = 200
const STOP_MS_MAX = 40_000

/** The result of a run. */
export interface MachineDrain {
  readonly responses: number
  /** Responses after the signal. */
  readonly responsesAfterSignal: number
  readonly stopMs: number
}

/** Starts another process of a role and stops it under load. Throws on the first violation. */
export async function drainMachine(
  machines: ManyMachines,
  role: Machine['role'],
): Promise<MachineDrain> {
  const machine = await machines.startMachine(role)
  const readers = openHttpClients(machines.redirects)
  const created: { code: string; target: string }[] = []
  const load = role === 'create' ? createLoad(created) : await redirectLoad(machines)
  let responses = 0
  let responsesAfterSignal = 0
  let isSignalled = false
  const onResponse = () => {
    responses++
    if (isSignalled) responsesAfterSignal++
  }
  try {
    const connections = await Promise.all(
      Array.from({ length: CLIENTS[role] }, () => openConnection(machine.port)),
    )
    const { check, next } = load
    await waitFor('a first expected response', async () => {
      const [first] = connections
      const request = next()
      if (first === undefined) throw new Error('no connection')
      const response = await first.exchange(request)
      if (response.status === 503) return false // the process just started on a busy machine
      check(request, response)
      return true
    })
    const working = connections.map((connection) => work(connection, { ...load, onResponse }))
    await Promise.race([
      waitFor('a load', () => responses >= WARM_UP_RESPONSES),
      Promise.all(working),
    ])
    isSignalled = true
    const signalledMs = performance.now()
    machine.child.kill('SIGTERM')
    await withinDeadline('the last responses', Promise.all(working), STOP_MS_MAX)
    const exitCode = await withinDeadline('the exit', machine.exited, STOP_MS_MAX)
    const messages = machine.log.map(({ msg }) => msg)
    if (exitCode !== 0) {
      throw new Error(`${role} exited with ${String(exitCode)}: ${messages.join(', ')}`)
    }
    if (messages.at(-1) !== 'stopped') throw new Error(`${role} logged ${messages.join(', ')}`)
    const errors = machine.log.filter(({ level }) => level === 'error' || level === 'fatal')
    if (errors.length > 0) throw new Error(`${role} logged ${JSON.stringify(errors)}`)
    for (const { code, target } of created) {
      for (const reader of readers.all) await expectRedirect(reader, code, target)
    }
    return { responses, responsesAfterSignal, stopMs: Math.round(performance.now() - signalledMs) }
  } finally {
    readers.close()
  }
}

interface Load {
  readonly next: () => RawRequest
  /** Throws if the response is not the expected one. */
  readonly check: (request: RawRequest, response: RawResponse) => void
}

function createLoad(created: { code: string; target: string }[]): Load {
  const run = Math.floor(Math.random() * 2 ** 31).toString(36)
  let requests = 0
  return {
    next: () => createLinkRequest({ long_url: `https://example.com/${run}/${String(requests++)}` }),
    check(request, response) {
      const { long_url: target } = JSON.parse(String(request.body)) as { long_url: string }
      created.push({ code: codeOf(response), target })
    },
  }
}

async function redirectLoad({ creates }: ManyMachines): Promise<Load> {
  const { all, close } = openHttpClients(creates)
  const target = 'https://example.com/drained'
  const response = await all[0]?.send(createLinkRequest({ long_url: target }))
  close()
  if (response === undefined) throw new Error('no create process')
  const code = codeOf(response)
  let requests = 0
  return {
    // Some are in memory, others are read from cache and store.
    next: () => ({ path: requests++ % 4 === 0 ? `/d${requests.toString(36)}` : `/${code}` }),
    check({ path }, received) {
      // On a busy machine the lookup of an unknown code may exceed its deadline.
      const isMiss = received.status === 404 || received.status === 503
      const isExpected = path === `/${code}` ? isRedirectTo(received, target) : isMiss
      if (!isExpected) throw new Error(`${path}: ${String(received.status)}`)
    },
  }
}

/** Sends requests until a response closes the connection. Throws if a request is lost. */
async function work(
  connection: RawConnection,
  { next, check, onResponse }: Load & { onResponse: () => void },
): Promise<void> {
  for (;;) {
    const request = next()
    const response = await connection.exchange(request)
    check(request, response)
    onResponse()
    if (headerOf(response, 'Connection') === 'close') return
  }
}

/** The figures on one line. */
export function renderDrain(role: string, sum: MachineDrain): string {
  const { responses, responsesAfterSignal, stopMs } = sum
  const afterSignal = `${String(responsesAfterSignal)} after SIGTERM`
  return `${role}: ${String(responses)} responses, ${afterSignal}, stopped in ${String(stopMs)} ms`
}

/** Runs the test at full size. */
export async function run({ log }: { log: (line: string) => void }): Promise<void> {
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
