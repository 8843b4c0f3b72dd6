// What must hold of links, intents and answers in every state, whatever happens.
import type { ClaimState, Client, LinkRow } from './claim-state.ts'

/** The promises that `state` breaks. */
export function brokenClaims(
  state: ClaimState,
  seen: { quiet: boolean; faults: number; clients: readonly Client[] },
): string[] {
  const groups = Map.groupBy(seen.clients, ({ name, key }) => key ?? `without key: ${name}`)
  const broken = [...groups.values()].flatMap((clients) => brokenForKey(state, clients))
  for (const [name, kind] of state.told) {
    if (kind === 'threw') broken.push('a request failed loudly')
    const isRejected = kind === 'store-unavailable' || kind === 'outcome-unknown'
    // Each step of a request has at least one retry before its deadline.
    if (isRejected && seen.faults <= 1) broken.push('503 after one fault')
    if (state.late.includes(name) && kind !== 'created' && !isRejected) {
      broken.push('a repeat after a 201 was refused')
    }
  }
  const answered = new Set(state.told.map(([, , code]) => code))
  const untold = Object.keys(state.links).some((code) => !answered.has(code))
  if (seen.quiet && seen.faults === 0 && untold) broken.push('nobody was told of a link')
  return broken
}

/** `clients` share a key, or there is one client without a key. */
function brokenForKey(state: ClaimState, clients: readonly Client[]): string[] {
  const broken: string[] = []
  const told = state.told.filter(([name]) => clients.some((client) => client.name === name))
  const created = told.filter(([, kind]) => kind === 'created')
  const ours = Object.values(state.links).filter(([writerId]) => isBy(clients, writerId))
  if (ours.length > 1) broken.push('two links for one key')
  if (countOf(created.map(([, , code, expiresAtMs]) => `${code} ${String(expiresAtMs)}`)) > 1) {
    broken.push('two different 201s for one key')
  }
  if (created.filter(([, , , , replayed]) => !replayed).length > 1) broken.push('two first answers')
  if (countOf(created.map(([name]) => bodyOf(clients, name))) > 1) {
    broken.push('two bodies for one key')
  }
  for (const [name, kind] of told) {
    const wroteItself = ours.some(([writerId]) => writerId.startsWith(`${name}.`))
    if (kind === 'alias-taken' && ours.length + created.length > 0) broken.push('409 to the winner')
    if (storesNone(kind, clients) && wroteItself) broken.push(`${kind}, and a link was stored`)
  }
  const isFounded = created.every(([, , code, expiresAtMs]) =>
    isRowOf(clients, state.links[code], expiresAtMs),
  )
  if (!isFounded) broken.push('201 without a row of its own')
  const isTrue = created.every(([name, , code]) =>
    [null, bodyOf(clients, name)].includes(state.links[code]?.[1]),
  )
  if (isFounded && !isTrue) broken.push('201 with another target')
  return broken
}

/** With a key, who repeats a request finishes it under the name of the first. */
function storesNone(kind: string, clients: readonly Client[]): boolean {
  return kind === 'key-reused' || (kind === 'store-unavailable' && clients.length === 1)
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

/** A mutant may have erased the writer; the row counts as its own all the same. */
function isRowOf(
  clients: readonly Client[],
  row: LinkRow | undefined,
  expiresAtMs: number,
): boolean {
  if (row?.[2] !== expiresAtMs) return false
  return row[0] === '' || isBy(clients, row[0])
}
