// The invariants of links, intents and responses, for every state.
import type { ClaimState, Client, LinkRow } from './claim-state.ts'

/** The invariants that `state` violates. */
export function brokenClaims(
  state: ClaimState,
  run: { quiet: boolean; faults: number; clients: readonly Client[] },
): string[] {
  const groups = Map.groupBy(run.clients, ({ name, key }) => key ?? `without key: ${name}`)
  const broken = [...groups.values()].flatMap((clients) => brokenForKey(state, clients))
  for (const [name, kind] of state.results) {
    if (kind === 'threw') broken.push('a request threw an error')
    const isRejected = kind === 'not-created' || kind === 'outcome-unknown'
    // Each step of a request has at least one retry before its deadline.
    if (isRejected && run.faults <= 1) broken.push('503 after one fault')
    if (state.retries.includes(name) && kind !== 'created' && !isRejected) {
      broken.push('a retry after a 201 was rejected')
    }
  }
  const reported = new Set(state.results.map(([, , code]) => code))
  const hasUnreported = Object.keys(state.links).some((code) => !reported.has(code))
  if (run.quiet && run.faults === 0 && hasUnreported)
    broken.push('a link was stored, and no client received it')
  return broken
}

/** `clients` share a key, or there is one client without a key. */
function brokenForKey(state: ClaimState, clients: readonly Client[]): string[] {
  const broken: string[] = []
  const results = state.results.filter(([name]) => clients.some((client) => client.name === name))
  const created = results.filter(([, kind]) => kind === 'created')
  const ours = Object.values(state.links).filter(([writerId]) => isBy(clients, writerId))
  if (ours.length > 1) broken.push('two links for one key')
  if (countOf(created.map(([, , code, expiresAtMs]) => `${code} ${String(expiresAtMs)}`)) > 1) {
    broken.push('two different 201s for one key')
  }
  if (created.filter(([, , , , replayed]) => !replayed).length > 1)
    broken.push('two 201s that are not replays')
  if (countOf(created.map(([name]) => bodyOf(clients, name))) > 1) {
    broken.push('two bodies for one key')
  }
  for (const [name, kind] of results) {
    const wroteItself = ours.some(([writerId]) => writerId.startsWith(`${name}.`))
    if (kind === 'alias-taken' && ours.length + created.length > 0) broken.push('409 to the winner')
    if (mustStoreNone(kind, clients) && wroteItself) broken.push(`${kind}, and a link was stored`)
  }
  const areAllStored = created.every(([, , code, expiresAtMs]) =>
    isRowOf(clients, state.links[code], expiresAtMs),
  )
  if (!areAllStored) broken.push('201 without a row of its own')
  const haveOwnTarget = created.every(([name, , code]) =>
    [null, bodyOf(clients, name)].includes(state.links[code]?.[1]),
  )
  if (areAllStored && !haveOwnTarget) broken.push('201 with another target')
  return broken
}

/** With a key, a retry completes the request under the writer id of the first. */
function mustStoreNone(kind: string, clients: readonly Client[]): boolean {
  return kind === 'key-reused' || (kind === 'not-created' && clients.length === 1)
}

function countOf(values: readonly (string | undefined)[]): number {
  return new Set(values).size
}

function bodyOf(clients: readonly Client[], name: string): string | undefined {
  return clients.find((client) => client.name === name)?.body
}

function isBy(clients: readonly Client[], writerId: string): boolean {
  return clients.some(({ name }) => writerId.startsWith(`${name}.`))
}

/** Whether `row` is of these clients; a row counts also if a mutant erased its writer. */
function isRowOf(
  clients: readonly Client[],
  row: LinkRow | undefined,
  expiresAtMs: number,
): boolean {
  if (row?.[2] !== expiresAtMs) return false
  return row[0] === '' || isBy(clients, row[0])
}
