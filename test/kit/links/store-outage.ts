// The processes while Cassandra nodes are down: `/readyz`, the log, the metrics, and creates that
// are rejected immediately; and the links that survive a crash of all nodes.
import { CREATE_MS_MAX } from '../../../src/create/create-link.ts'
import { PROBE_EVERY_MS } from '../../../src/stores/cassandra/majority.ts'
import type { HttpClient } from '../http/http-client.ts'
import { codeOf, createLinkRequest } from '../http/client.ts'
import { openHttpClients, problemOf, describeResponse } from '../http/machine-clients.ts'
import type { Machine, ManyMachines } from '../processes/many-machines.ts'
import type { RawRequest } from '../http/raw-http.ts'
import { waitFor } from '../wait-for.ts'

/** Five times the deadline of the service, which create-link-deadline.test.ts verifies exactly. */
const REJECTION_MS_MAX = 5 * CREATE_MS_MAX
const FAST_REJECTION_MS_MAX = 5 * 300
const RECOVERY_MS_MAX = 5 * (2 * PROBE_EVERY_MS)
/** A hung node is detected by a create that timed out and two rounds of probes. */
const DETECTION_MS_MAX = 5 * (CREATE_MS_MAX + 2 * PROBE_EVERY_MS)
/** Each process counts all nodes as `up` when it connects, before the first fault. */
const CASSANDRA_NODES = 3
const HUNG_CREATES = 12
const CRASHED_CREATES = 8

async function storeStateOf({ adminUrl }: Machine): Promise<string> {
  const response = await fetch(`${adminUrl}/readyz`)
  const { dependencies } = (await response.json()) as { dependencies: { store: string } }
  return `${String(response.status)} ${dependencies.store}`
}

/** Waits until each of them reports this state of the store; they stay ready. */
export async function waitForStoreState(
  machines: readonly Machine[],
  state: 'up' | 'no-majority',
  msMax = DETECTION_MS_MAX,
): Promise<void> {
  for (const machine of machines) {
    const isSo = async () => (await storeStateOf(machine)) === `200 ${state}`
    await waitFor(`${machine.role}: store ${state}`, isSo, msMax)
  }
}

/** The time until this create is rejected. Throws if it succeeds or takes longer than `msMax`. */
export async function mustReject(
  httpClient: HttpClient | undefined,
  request: RawRequest,
  msMax = REJECTION_MS_MAX,
): Promise<number> {
  if (httpClient === undefined) throw new Error('no process to send the request to')
  const sentMs = performance.now()
  const response = await httpClient.send(request, 2 * msMax)
  const tookMs = performance.now() - sentMs
  if (response.status === 201) throw new Error(`${codeOf(response)} was created by a minority`)
  if (response.status !== 503 || problemOf(response) !== 'store-unavailable') {
    throw new Error(`a create: ${describeResponse(response)}`)
  }
  if (tookMs > msMax) throw new Error(`a rejection took ${tookMs.toFixed(0)} ms`)
  return tookMs
}

/** A create with a key, one without, or one with an alias. */
function someCreate(name: string, i: number): RawRequest {
  const body = { long_url: `https://example.com/${name}/${String(i)}` }
  if (i % 3 === 0) return createLinkRequest(body)
  if (i % 3 === 1) return createLinkRequest(body, { 'Idempotency-Key': `${name}-${String(i)}` })
  return createLinkRequest({ ...body, custom_alias: `${name}${String(i)}`.slice(-10) })
}

/** The longest rejection of some creates, once every process has detected the lost majority. */
export async function longestFastRejection(
  machines: readonly Machine[],
  name: string,
): Promise<number> {
  await waitForStoreState(machines, 'no-majority')
  const clients = openHttpClients(machines)
  try {
    const each = Array.from({ length: HUNG_CREATES }, (_, i) => {
      const httpClient = clients.all[i % clients.all.length]
      return mustReject(httpClient, someCreate(name, i), FAST_REJECTION_MS_MAX)
    })
    return Math.max(...(await Promise.all(each)))
  } finally {
    clients.close()
  }
}

/** Throws unless every process logs and counts that these nodes went down, or came up later. */
export async function mustReportNodes(
  machines: readonly Machine[],
  state: 'down' | 'up',
  addresses: readonly string[],
): Promise<void> {
  await waitForStoreState(machines, state === 'up' ? 'up' : 'no-majority')
  for (const machine of machines) {
    const isReported = (node: string) =>
      machine.log.findLast(({ address, msg }) => {
        return String(msg).startsWith('Cassandra node') && String(address).startsWith(`${node}:`)
      })?.['msg'] === `Cassandra node ${state}`
    await waitFor(`${machine.role} to log nodes that are ${state}`, () =>
      addresses.every(isReported),
    )
    const logged = machine.log.filter(({ msg }) => msg === `Cassandra node ${state}`).length
    const changes = 'curtail_cassandra_node_changes_total'
    const connected = state === 'up' ? CASSANDRA_NODES : 0
    if ((await machine.metric(changes, `state="${state}"`)) < logged + connected) {
      throw new Error(`${machine.role} did not count the nodes that are ${state}`)
    }
    if ((await machine.metric('curtail_cassandra_majority')) !== (state === 'up' ? 1 : 0)) {
      throw new Error(`${machine.role} reports ${state === 'up' ? 'no' : 'a'} majority`)
    }
  }
}

/**
 * Kills all nodes concurrently, right after creates were acknowledged. Every link must be found
 * after the restart, and its alias must be taken. Returns the number of links.
 */
export async function killAllNodes(machines: ManyMachines, name: string): Promise<number> {
  const { creates, cassandra } = machines
  const clients = openHttpClients(creates)
  const httpClient = clients.all[0]
  try {
    if (httpClient === undefined) throw new Error('no process to send the request to')
    const aliases = Array.from({ length: CRASHED_CREATES }, (_, i) => `${name}-${String(i)}`)
    const claim = (alias: string, target: string) =>
      httpClient.send(
        createLinkRequest({ long_url: `https://example.com/${target}`, custom_alias: alias }),
      )
    const created = await Promise.all(aliases.map((alias) => claim(alias, alias)))
    await Promise.all(cassandra.nodes.map((node) => node.kill()))
    const acknowledged = created.map(codeOf)
    await Promise.all(cassandra.nodes.map((node) => node.restart()))
    await waitForStoreState(creates, 'up')
    for (const alias of acknowledged) {
      const response = await claim(alias, 'another')
      if (response.status !== 409)
        throw new Error(`${alias} was lost: ${describeResponse(response)}`)
      const found = await creates[0]?.admin({ path: `/links/${alias}` })
      const { long_url: target } = ((await found?.json()) ?? {}) as { long_url?: string }
      if (target !== `https://example.com/${alias}`)
        throw new Error(`${alias} is ${String(target)}`)
    }
    return acknowledged.length
  } finally {
    clients.close()
  }
}

/** The result of a run with two hung nodes. */
export interface HungNodes {
  /** The longest rejection of a create, before its process detected the outage and after. */
  readonly firstMsMax: number
  readonly fastMsMax: number
  /** From the resumption of the nodes until a create succeeded. */
  readonly recoveryMs: number
}

/** Stops two of three nodes with SIGSTOP and resumes them. Throws on a violation. */
export async function hangTwoNodes(machines: ManyMachines, name: string): Promise<HungNodes> {
  const { creates, cassandra } = machines
  const hung = cassandra.nodes.slice(1)
  const clients = openHttpClients(creates)
  await waitForStoreState(creates, 'up')
  try {
    for (const node of hung) node.pause()
    const first = Array.from({ length: HUNG_CREATES }, (_, i) =>
      mustReject(clients.all[i % clients.all.length], someCreate(`f${name}`, i)),
    )
    const firstMsMax = Math.max(...(await Promise.all(first)))
    const fastMsMax = await longestFastRejection(creates, `k${name}`)
    for (const node of hung) node.resume()
    const resumedMs = performance.now()
    const isCreated = async () => (await clients.all[0]?.send(someCreate(name, 1)))?.status === 201
    await waitFor('a create after the nodes resumed', isCreated, RECOVERY_MS_MAX)
    const recoveryMs = performance.now() - resumedMs
    await waitForStoreState(creates, 'up')
    return {
      firstMsMax: Math.round(firstMsMax),
      fastMsMax: Math.round(fastMsMax),
      recoveryMs: Math.round(recoveryMs),
    }
  } finally {
    for (const node of hung) node.resume()
    clients.close()
  }
}
