// What the `create` processes report and answer while nodes of Cassandra are down: `/readyz`, the
// log, the metrics, and creates that are rejected at once; and what is left after all crashed.
import { CREATE_MS_MAX } from '../../src/create/create-link.ts'
import { PROBE_EVERY_MS } from '../../src/stores/cassandra/majority.ts'
import type { Asker } from './asker.ts'
import { codeOf, createAsk } from './client.ts'
import { openAskers, problemOf, renderAnswer } from './machine-clients.ts'
import type { Machine, ManyMachines } from './many-machines.ts'
import type { Ask } from './raw-http.ts'
import { waitFor } from './wait-for.ts'

/** Five times what the service keeps. */
const REFUSAL_MS_MAX = 5 * CREATE_MS_MAX
const KNOWN_REFUSAL_MS_MAX = 5 * 300
const RECOVERY_MS_MAX = 5 * (2 * PROBE_EVERY_MS)
/** A hung node is found by a create that has used up its time, and two rounds of probes. */
const KNOWN_MS_MAX = 5 * (CREATE_MS_MAX + 2 * PROBE_EVERY_MS)
const HUNG_CREATES = 12
const CRASHED_CREATES = 8

async function storeStateOf({ adminUrl }: Machine): Promise<string> {
  const answer = await fetch(`${adminUrl}/readyz`)
  const { dependencies } = (await answer.json()) as { dependencies: { store: string } }
  return `${String(answer.status)} ${dependencies.store}`
}

/** Waits until each of them reports this state of the store; they stay ready. */
export async function untilStoreIs(
  machines: readonly Machine[],
  state: 'up' | 'no-majority',
  msMax = KNOWN_MS_MAX,
): Promise<void> {
  for (const machine of machines) {
    const isSo = async () => (await storeStateOf(machine)) === `200 ${state}`
    await waitFor(`${machine.role}: store ${state}`, isSo, msMax)
  }
}

/** How long it took until this create was rejected. Throws where it was not, or too late. */
export async function mustReject(
  asker: Asker | undefined,
  request: Ask,
  msMax = REFUSAL_MS_MAX,
): Promise<number> {
  if (asker === undefined) throw new Error('there is no process to ask')
  const sentMs = performance.now()
  const answer = await asker.ask(request, 2 * msMax)
  const tookMs = performance.now() - sentMs
  if (answer.status === 201) throw new Error(`${codeOf(answer)} was made by a minority`)
  if (answer.status !== 503 || problemOf(answer) !== 'store-unavailable') {
    throw new Error(`a create: ${renderAnswer(answer)}`)
  }
  if (tookMs > msMax) throw new Error(`a rejection took ${tookMs.toFixed(0)} ms`)
  return tookMs
}

/** A create with a key, one without, or one with an alias. */
function someCreate(name: string, i: number): Ask {
  const body = { long_url: `https://example.com/${name}/${String(i)}` }
  if (i % 3 === 0) return createAsk(body)
  if (i % 3 === 1) return createAsk(body, { 'Idempotency-Key': `${name}-${String(i)}` })
  return createAsk({ ...body, custom_alias: `${name}${String(i)}`.slice(-10) })
}

/** The longest of some creates, once every process knows that no majority responds. */
export async function rejectedAtOnce(machines: readonly Machine[], name: string): Promise<number> {
  await untilStoreIs(machines, 'no-majority')
  const askers = openAskers(machines)
  try {
    const each = Array.from({ length: HUNG_CREATES }, (_, i) => {
      const asker = askers.all[i % askers.all.length]
      return mustReject(asker, someCreate(name, i), KNOWN_REFUSAL_MS_MAX)
    })
    return Math.max(...(await Promise.all(each)))
  } finally {
    askers.close()
  }
}

/** Throws unless every process has logged and counted that these nodes went down. */
export async function mustHaveSeenDown(
  machines: readonly Machine[],
  addresses: readonly string[],
): Promise<void> {
  const isDown = (machine: Machine, address: string) =>
    machine.log.some(
      ({ msg, address: of }) => msg === 'Cassandra node down' && String(of).includes(address),
    )
  for (const machine of machines) {
    await waitFor(`${machine.role} to log nodes that are down`, () =>
      addresses.every((address) => isDown(machine, address)),
    )
    const changes = 'curtail_cassandra_node_changes_total'
    if ((await machine.metric(changes, 'state="down"')) < addresses.length) {
      throw new Error(`${machine.role} did not count nodes that went down`)
    }
    if ((await machine.metric('curtail_cassandra_majority')) !== 0) {
      throw new Error(`${machine.role} counts on a majority`)
    }
  }
}

/**
 * Kills all nodes at once right after creates were acknowledged. Every link must be found after the
 * restart, and its alias must not be given to another target. Returns how many there were.
 */
export async function killAllNodes(machines: ManyMachines, name: string): Promise<number> {
  const { creates, cassandra } = machines
  const askers = openAskers(creates)
  const asker = askers.all[0]
  try {
    if (asker === undefined) throw new Error('there is no process to ask')
    const aliases = Array.from({ length: CRASHED_CREATES }, (_, i) => `${name}-${String(i)}`)
    const claim = (alias: string, target: string) =>
      asker.ask(createAsk({ long_url: `https://example.com/${target}`, custom_alias: alias }))
    const made = await Promise.all(aliases.map((alias) => claim(alias, alias)))
    await Promise.all(cassandra.nodes.map((node) => node.kill()))
    const acknowledged = made.map(codeOf)
    await Promise.all(cassandra.nodes.map((node) => node.restart()))
    await untilStoreIs(creates, 'up')
    for (const alias of acknowledged) {
      const answer = await claim(alias, 'another')
      if (answer.status !== 409) throw new Error(`${alias} was lost: ${renderAnswer(answer)}`)
      const found = await creates[0]?.admin({ path: `/links/${alias}` })
      const { long_url: target } = ((await found?.json()) ?? {}) as { long_url?: string }
      if (target !== `https://example.com/${alias}`)
        throw new Error(`${alias} is ${String(target)}`)
    }
    return acknowledged.length
  } finally {
    askers.close()
  }
}

/** What a run with two nodes that hang gave. */
export interface HungNodes {
  /** The longest that a create took to be rejected, before its process knew and after. */
  readonly firstMsMax: number
  readonly knownMsMax: number
  /** From the moment that the nodes go on until a create succeeded. */
  readonly recoveryMs: number
}

/** Stops two of three nodes by SIGSTOP and lets them go on. Throws what it found. */
export async function hangTwoNodes(machines: ManyMachines, name: string): Promise<HungNodes> {
  const { creates, cassandra } = machines
  const hung = cassandra.nodes.slice(1)
  const askers = openAskers(creates)
  await untilStoreIs(creates, 'up')
  try {
    for (const node of hung) node.pause()
    const first = Array.from({ length: HUNG_CREATES }, (_, i) =>
      mustReject(askers.all[i % askers.all.length], someCreate(`f${name}`, i)),
    )
    const firstMsMax = Math.max(...(await Promise.all(first)))
    const knownMsMax = await rejectedAtOnce(creates, `k${name}`)
    for (const node of hung) node.resume()
    const resumedMs = performance.now()
    const isCreated = async () => (await askers.all[0]?.ask(someCreate(name, 1)))?.status === 201
    await waitFor('a create after the nodes went on', isCreated, RECOVERY_MS_MAX)
    const recoveryMs = performance.now() - resumedMs
    await untilStoreIs(creates, 'up')
    return {
      firstMsMax: Math.round(firstMsMax),
      knownMsMax: Math.round(knownMsMax),
      recoveryMs: Math.round(recoveryMs),
    }
  } finally {
    for (const node of hung) node.resume()
    askers.close()
  }
}
