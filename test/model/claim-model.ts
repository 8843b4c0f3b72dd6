// Requests as processes that run the real createLink() over the model's stores. A mutant may bend
// what the real code is given, to show which clause of the protocol a promise hangs on.
import type { Intent } from '../../src/links/intent-store.ts'
import type { Link } from '../../src/links/link.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createLink, type CreateDeps } from '../../src/create/create-link.ts'
import { brokenClaims } from './claim-promises.ts'
import {
  applyClaimOp,
  type BentStores,
  claimEvents,
  type ClaimState,
  type Client,
  type IntentRow,
  type LinkRow,
  type Told,
} from './claim-state.ts'
import type { Model } from './explore.ts'
import type { Ask, Process } from './replay.ts'

/** Everything that can be chosen of a scenario but its faults. */
export interface ClaimSetup extends BentStores {
  readonly clients: readonly Client[]
  /** Generated codes in the pool. */
  readonly codes?: readonly string[]
  readonly erasures?: number
  /** How often all intents may end, as after their day. */
  readonly expiries?: number
  /** Changes what the real code is given. */
  readonly bend?: (deps: CreateDeps, own: { client: Client; ask: Ask }) => CreateDeps
}

const START_MS = 1_790_000_000_000
const metrics = createMetrics()

/** The model and processes of a scenario. */
export function claimScenario(setup: ClaimSetup): {
  model: Model<ClaimState>
  processes: Process[]
} {
  const { clients, codes = ['g1', 'g2', 'g3', 'g4'], erasures = 0, expiries = 0 } = setup
  const model: Model<ClaimState> = {
    initial: { links: {}, intents: {}, codes, told: [], late: [], erasures, expiries },
    apply: (state, op) => applyClaimOp(state, op, setup),
    finish(state, client, outcome) {
      const told: Told = [client, ...(outcome as [string, string, number, boolean])]
      const all = [...state.told, told].sort(([a], [b]) => (a < b ? -1 : 1))
      return { ...state, told: all }
    },
    events: (state) => claimEvents(state, setup),
    broken: (state, seen) => brokenClaims(state, { ...seen, clients }),
  }
  const processes = clients.map((client, i) => processOf(client, START_MS + i * 1000, setup))
  return { model, processes }
}

function processOf(client: Client, startMs: number, { bend }: ClaimSetup): Process {
  const { name, body, alias, key } = client
  return {
    name,
    async run(ask) {
      await ask('local', ['begin', name])
      const deps = depsOf(ask, name, startMs)
      const request = { longUrl: body, alias, ttlDays: 1, idempotencyKey: key }
      const outcome = await createLink(bend?.(deps, { client, ask }) ?? deps, request)
      if (outcome.kind !== 'created') return [outcome.kind, '', 0, false]
      return ['created', outcome.link.code, outcome.link.expiresAtMs, outcome.replayed]
    },
  }
}

/** What the real code is given: each call of a store is put to the explorer. */
function depsOf(ask: Ask, name: string, startMs: number): CreateDeps {
  let nowMs = startMs
  let ids = 0
  return {
    metrics,
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    pause(ms) {
      nowMs += ms * 200 // two or three repeats, and the request's time is over
      return Promise.resolve()
    },
    random: () => 0.5, // runs are replayed
    newWriterId: () => `${name}.${String(ids++)}`,
    onStored: () => undefined,
    links: linksOf(ask),
    intents: intentsOf(ask),
    supply: {
      async take() {
        const code = await ask('local', ['take'])
        return code === null ? { kind: 'pool-empty' } : { kind: 'code', code: code as string }
      },
    },
  }
}

function linksOf(ask: Ask): CreateDeps['links'] {
  return {
    async insertIfAbsent({ code, writerId, longUrl, expiresAtMs }) {
      const claim = ['claim', code, writerId, longUrl, expiresAtMs] as const
      const [there] = (await ask('write', claim)) as [writerId: string, applied: boolean]
      return there
    },
    async readSerial(code) {
      const row = (await ask('read', ['link?', code])) as LinkRow | null
      return row === null ? undefined : linkOf(code, row)
    },
  }
}

function intentsOf(ask: Ask): CreateDeps['intents'] {
  return {
    async insertIfAbsent(intent) {
      const { keyHash, bodyHash, code, writerId, createdAtMs, expiresAtMs } = intent
      const row = [cut(bodyHash), code, writerId, createdAtMs, expiresAtMs]
      const stood = await ask('write', ['intend', cut(keyHash), ...row])
      return intentOf(keyHash, stood as unknown as IntentRow)
    },
    async readSerial(keyHash) {
      const row = (await ask('read', ['intent?', cut(keyHash)])) as IntentRow | null
      return row === null ? undefined : intentOf(keyHash, row)
    },
    async move({ intent: { keyHash, code, writerId }, to }) {
      const stood = await ask('write', ['move', cut(keyHash), to, code, writerId])
      return stood === null ? undefined : intentOf(keyHash, stood as unknown as IntentRow)
    },
  }
}

function linkOf(code: string, [writerId, longUrl, expiresAtMs]: LinkRow): Link {
  const nulls = { creatorId: null, disabledAtMs: null, deletedAtMs: null }
  return { code, longUrl, createdAtMs: START_MS, expiresAtMs, writerId, ...nulls }
}

function intentOf(keyHash: string, row: IntentRow): Intent {
  const [body, code, writerId, createdAtMs, expiresAtMs] = row
  return { keyHash, bodyHash: whole(body), code, writerId, createdAtMs, expiresAtMs }
}

const wholeHashes = new Map<string, string>()

/** A hash by its first digits, so that states stay small. */
function cut(hash: string): string {
  wholeHashes.set(hash.slice(0, 6), hash)
  return hash.slice(0, 6)
}

function whole(start: string): string {
  return wholeHashes.get(start) ?? start
}
