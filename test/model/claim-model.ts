// Create requests as processes that run the real createLink() over the model's stores. A mutant
// replaces dependencies of the real code, to verify that the invariants need each clause of the
// protocol.
import type { Intent } from '../../src/links/intent-store.ts'
import type { Link } from '../../src/links/link.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createLink, type CreateDeps } from '../../src/create/create-link.ts'
import { brokenClaims } from './claim-invariants.ts'
import {
  applyClaimOp,
  claimEvents,
  type ClaimState,
  type Client,
  type IntentRow,
  type ClientResult,
  type LinkRow,
  type StoreMutation,
} from './claim-state.ts'
import type { Model } from './explore.ts'
import type { Perform, Process } from './replay.ts'

/** The options of a scenario, except its faults. */
export interface ClaimSetup extends StoreMutation {
  readonly clients: readonly Client[]
  /** Generated codes in the pool. */
  readonly codes?: readonly string[]
  readonly erasures?: number
  /** How often all intents may expire, as they do after one day. */
  readonly expiries?: number
  /** Replaces dependencies of the real code. */
  readonly mutate?: (deps: CreateDeps, own: { client: Client; perform: Perform }) => CreateDeps
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
    initial: { links: {}, intents: {}, codes, results: [], retries: [], erasures, expiries },
    apply: (state, op) => applyClaimOp(state, op, setup),
    finish(state, client, outcome) {
      const result: ClientResult = [client, ...(outcome as [string, string, number, boolean])]
      const all = [...state.results, result].sort(([a], [b]) => (a < b ? -1 : 1))
      return { ...state, results: all }
    },
    events: (state) => claimEvents(state, setup),
    broken: (state, run) => brokenClaims(state, { ...run, clients }),
  }
  const processes = clients.map((client, i) => processOf(client, START_MS + i * 1000, setup))
  return { model, processes }
}

function processOf(client: Client, startMs: number, { mutate }: ClaimSetup): Process {
  const { name, body, alias, key } = client
  return {
    name,
    async run(perform) {
      await perform('local', ['request', name])
      const deps = depsOf(perform, name, startMs)
      const request = {
        longUrl: body,
        alias,
        ttlDays: 1,
        creatorId: null,
        idempotencyKey: key,
      }
      const outcome = await createLink(mutate?.(deps, { client, perform }) ?? deps, request)
      if (outcome.kind !== 'created') return [outcome.kind, '', 0, false]
      return ['created', outcome.link.code, outcome.link.expiresAtMs, outcome.replayed]
    },
  }
}

/** The dependencies of the real code: each store call is an operation on the model. */
function depsOf(perform: Perform, name: string, startMs: number): CreateDeps {
  let nowMs = startMs
  let ids = 0
  return {
    metrics,
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    pause(ms) {
      nowMs += ms * 200 // the deadline passes after two or three retries
      return Promise.resolve()
    },
    random: () => 0.5, // runs are replayed
    newWriterId: () => `${name}.${String(ids++)}`,
    invalidateCaches: () => undefined,
    links: linksOf(perform),
    intents: intentsOf(perform),
    supply: {
      async take() {
        const code = await perform('local', ['take code'])
        return code === null ? { kind: 'pool-empty' } : { kind: 'code', code: code as string }
      },
    },
  }
}

function linksOf(perform: Perform): CreateDeps['links'] {
  return {
    async insertIfAbsent({ code, writerId, longUrl, expiresAtMs }) {
      const claim = ['claim', code, writerId, longUrl, expiresAtMs] as const
      const [winner] = (await perform('write', claim)) as [writerId: string, applied: boolean]
      return winner
    },
    async readSerial(code) {
      const row = (await perform('read', ['read link', code])) as LinkRow | null
      return row === null ? undefined : linkOf(code, row)
    },
  }
}

function intentsOf(perform: Perform): CreateDeps['intents'] {
  return {
    async insertIfAbsent(intent) {
      const { keyHash, bodyHash, code, writerId, createdAtMs, expiresAtMs } = intent
      const row = [shortHash(bodyHash), code, writerId, createdAtMs, expiresAtMs]
      const existing = await perform('write', ['insert intent', shortHash(keyHash), ...row])
      return intentOf(keyHash, existing as unknown as IntentRow)
    },
    async readSerial(keyHash) {
      const row = (await perform('read', ['read intent', shortHash(keyHash)])) as IntentRow | null
      return row === null ? undefined : intentOf(keyHash, row)
    },
    async move({ intent: { keyHash, code, writerId }, to }) {
      const existing = await perform('write', [
        'move intent',
        shortHash(keyHash),
        to,
        code,
        writerId,
      ])
      return existing === null ? undefined : intentOf(keyHash, existing as unknown as IntentRow)
    },
  }
}

function linkOf(code: string, [writerId, longUrl, expiresAtMs]: LinkRow): Link {
  const nulls = { creatorId: null, disabledAtMs: null, deletedAtMs: null }
  return { code, longUrl, createdAtMs: START_MS, expiresAtMs, writerId, ...nulls }
}

function intentOf(keyHash: string, row: IntentRow): Intent {
  const [body, code, writerId, createdAtMs, expiresAtMs] = row
  return { keyHash, bodyHash: fullHash(body), code, writerId, createdAtMs, expiresAtMs }
}

const fullHashes = new Map<string, string>()

/** A hash by its first digits, so that states stay small. */
function shortHash(hash: string): string {
  fullHashes.set(hash.slice(0, 6), hash)
  return hash.slice(0, 6)
}

function fullHash(start: string): string {
  return fullHashes.get(start) ?? start
}
