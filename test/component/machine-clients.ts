// Clients of the distributed service in tests: they keep connections alive, and who creates repeats
// at 503 with the same Idempotency-Key, also on another process, as a careful client does.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Asker, openAsker } from './asker.ts'
import { codeOf, createAsk } from './client.ts'
import type { Machine } from './many-machines.ts'
import { type Answer, type Ask, headerOf, jsonOf } from './raw-http.ts'

const REPEATS_MAX = 120
const REPEAT_MS = 250
const SILENCES_MAX = 20

/** Askers of several processes. */
export function openAskers(machines: readonly Machine[]): {
  readonly all: readonly Asker[]
  readonly close: () => void
} {
  const all = machines.map(({ port }) => openAsker(port))
  const close = () => {
    for (const asker of all) asker.close()
  }
  return { all, close }
}

/** A link that somebody wants, by a key. */
export interface Wish {
  readonly key: string
  readonly target: string
  readonly alias?: string
  readonly ttlDays?: number
}

/** What came of it. */
export interface Told {
  readonly wish: Wish
  /** The code of its link; none where its alias was taken. */
  readonly code: string | undefined
  readonly isReplay: boolean
  /** How often it was answered 503 before. */
  readonly repeats: number
}

/** The request that a wish makes. */
export function askOf({ key, target, alias, ttlDays }: Wish): Ask {
  const body = {
    long_url: target,
    ...(alias !== undefined && { custom_alias: alias }),
    ...(ttlDays !== undefined && { ttl_days: ttlDays }),
  }
  return createAsk(body, { 'Idempotency-Key': key })
}

/** Asks one process after the other until it is told 201 or 409. Throws at any other answer. */
export async function createUntilTold(askers: readonly Asker[], wish: Wish): Promise<Told> {
  const ask = askOf(wish)
  for (let repeats = 0; repeats <= REPEATS_MAX; repeats++) {
    const asker = askers[(wish.key.length + repeats) % askers.length]
    if (asker === undefined) throw new Error('there is nobody to ask')
    const answer = await asker.ask(ask)
    if (answer.status === 201) {
      const isReplay = headerOf(answer, 'Idempotency-Replayed') === 'true'
      return { wish, code: codeOf(answer), isReplay, repeats }
    }
    if (answer.status === 409) return { wish, code: undefined, isReplay: false, repeats }
    if (answer.status !== 503) throw new Error(`${wish.key}: ${renderAnswer(answer)}`)
    if (headerOf(answer, 'Retry-After') === undefined) throw new Error('503 without Retry-After')
    await sleep(REPEAT_MS)
  }
  throw new Error(`${wish.key}: 503 for ever`)
}

/** Status and the name of the problem, for an error's text. */
export function renderAnswer(answer: Answer): string {
  return `${String(answer.status)} ${answer.body.toString().slice(0, 300)}`
}

/** The name of the problem that an answer tells of. */
export function problemOf(answer: Answer): string {
  const { type } = jsonOf(answer)
  return typeof type === 'string' ? type.slice(type.lastIndexOf('/') + 1) : ''
}

/**
 * What a look-up comes to. On a busy machine one may run out of its deadline: 503 says nothing, and
 * it is put again, as the answer asks.
 */
export async function follow(asker: Asker, code: string): Promise<Answer> {
  for (let silences = 0; ; silences++) {
    const answer = await asker.ask({ path: `/${code}` })
    if (answer.status !== 503 || silences === SILENCES_MAX) return answer
    if (headerOf(answer, 'Retry-After') === undefined) throw new Error('503 without Retry-After')
    await sleep(REPEAT_MS)
  }
}

/** Throws where the code does not lead to its target. */
export async function mustLeadTo(asker: Asker, code: string, target: string): Promise<void> {
  expectTarget(await follow(asker, code), { code, target })
}

/** Throws where one single look-up does not give the code's target. */
export async function mustLeadAtOnce(asker: Asker, code: string, target: string): Promise<void> {
  expectTarget(await asker.ask({ path: `/${code}` }), { code, target })
}

function expectTarget(answer: Answer, { code, target }: { code: string; target: string }): void {
  if (leadsTo(answer, target)) return
  const location = String(headerOf(answer, 'Location'))
  throw new Error(`/${code} is not ${target}, but ${renderAnswer(answer)} ${location}`)
}

/** Whether an answer is the redirect to this target. */
export function leadsTo(answer: Answer, target: string): boolean {
  return answer.status === 302 && headerOf(answer, 'Location') === target
}

/** Does `work` to every item, so many at once. */
export async function inParallel<T>(
  flight: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items].reverse()
  const worker = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: flight }, worker))
}
