// An explicit-state model checker. It explores breadth first, so that each trace is a shortest one.
// Real code runs between its store calls (replay.ts); a model defines the effect of each call; the
// explorer picks the next step: a response, a timeout, a delayed write, a crash. Random walks reach
// greater depths.
import {
  createReplayer,
  type Json,
  type Op,
  type PendingCall,
  type Point,
  type Process,
  type Replayer,
  type Result,
  UNKNOWN,
} from './replay.ts'

/** The contents and behavior of the stores. States are immutable. */
export interface Model<S> {
  readonly initial: S
  /** The atomic effect of one call, and its result. */
  apply(state: S, op: Op): { readonly state: S; readonly result: Json }
  /** The state after a process has completed with this outcome. */
  finish(state: S, process: string, outcome: Json): S
  /** The events that may occur independently of the processes. */
  events?(state: S): readonly { readonly label: string; readonly state: S }[]
  /** The violated invariants; `quiet` = every process has completed or crashed. */
  broken(state: S, run: { readonly quiet: boolean; readonly faults: number }): readonly string[]
}

/** A model, its processes, and the maximum number of each fault. */
export interface Scenario<S> {
  readonly model: Model<S>
  readonly processes: readonly Process[]
  readonly timeouts: number
  readonly crashes: number
  readonly statesMax?: number
}

/** The result of an exploration. */
export interface Exploration {
  /** A shortest trace to each violated invariant. */
  readonly violations: ReadonlyMap<string, readonly string[]>
  readonly states: number
  /** Distinct runs of the real code. */
  readonly executions: number
  /** Whether every state within the bounds was visited. */
  readonly complete: boolean
}

type Place = Point | 'done' | 'crashed'

interface World<S> {
  readonly state: S
  readonly inFlight: readonly Op[]
  readonly faults: number
  readonly timeouts: number
  readonly crashes: number
  readonly places: readonly Place[]
}

interface Step<S> {
  readonly label: string
  readonly world: World<S>
}

const STATES_MAX = 1_000_000

/** Explores every interleaving within the bounds; `stopAtFirst` stops at the first violation. */
export async function explore<S>(
  scenario: Scenario<S>,
  options: { readonly stopAtFirst?: boolean } = {},
): Promise<Exploration> {
  const replayer = createReplayer()
  const worlds: (World<S> | undefined)[] = [await initialWorld(scenario, replayer)]
  const cameFrom: { readonly from: number; readonly label: string }[] = [{ from: -1, label: '' }]
  const visited = new Set<string>(worlds.map((world) => (world === undefined ? '' : keyOf(world))))
  const violations = new Map<string, readonly string[]>()
  const traceTo = (at: number): string[] => {
    const labels: string[] = []
    for (let i = at; i > 0; i = cameFrom[i]?.from ?? 0) labels.unshift(cameFrom[i]?.label ?? '')
    return labels
  }
  const exploration = (complete: boolean): Exploration => {
    return { violations, states: worlds.length, executions: replayer.executions(), complete }
  }
  for (let at = 0; at < worlds.length; at++) {
    const world = worlds[at]
    if (world === undefined) continue
    worlds[at] = undefined
    const broken = brokenIn(scenario.model, world)
    for (const invariant of broken) {
      if (!violations.has(invariant)) violations.set(invariant, traceTo(at))
    }
    if (broken.length > 0 && options.stopAtFirst === true) return exploration(true)
    if (broken.length > 0) continue
    if (worlds.length > (scenario.statesMax ?? STATES_MAX)) return exploration(false)
    for (const { label, world: next } of await stepsFrom(scenario.model, world, replayer)) {
      const key = keyOf(next)
      if (visited.has(key)) continue
      visited.add(key)
      worlds.push(next)
      cameFrom.push({ from: at, label })
    }
  }
  return exploration(true)
}

/** Walks random traces; `random` returns numbers from 0 to below 1. */
export async function walk<S>(
  scenario: Scenario<S>,
  options: { readonly walks: number; readonly random: () => number },
): Promise<Exploration> {
  const replayer = createReplayer()
  const first = await initialWorld(scenario, replayer)
  const violations = new Map<string, readonly string[]>()
  let states = 0
  for (let i = 0; i < options.walks; i++) {
    const labels: string[] = []
    let world = first
    for (;;) {
      states++
      for (const invariant of brokenIn(scenario.model, world)) {
        if (!violations.has(invariant)) violations.set(invariant, [...labels])
      }
      const steps = await stepsFrom(scenario.model, world, replayer)
      const step = steps[Math.floor(options.random() * steps.length)]
      if (step === undefined || violations.size > 0) break
      labels.push(step.label)
      world = step.world
    }
  }
  return { violations, states, executions: replayer.executions(), complete: false }
}

async function initialWorld<S>(scenario: Scenario<S>, replayer: Replayer): Promise<World<S>> {
  const { model, processes, timeouts, crashes } = scenario
  const places: Point[] = []
  for (const process of processes) places.push(await replayer.start(process))
  return { state: model.initial, inFlight: [], faults: 0, timeouts, crashes, places }
}

function keyOf<S>({ state, inFlight, timeouts, crashes, places }: World<S>): string {
  const ids = places.map((place) => (typeof place === 'string' ? place : place.id))
  return JSON.stringify([state, inFlight, timeouts, crashes, ids])
}

function brokenIn<S>(model: Model<S>, { state, places, faults }: World<S>): readonly string[] {
  const quiet = places.every((place) => typeof place === 'string')
  return model.broken(state, { quiet, faults })
}

async function stepsFrom<S>(
  model: Model<S>,
  world: World<S>,
  replayer: Replayer,
): Promise<Step<S>[]> {
  const steps: Step<S>[] = []
  for (const [i, place] of world.places.entries()) {
    if (typeof place === 'string') continue
    const { name } = place.process
    for (const call of place.pending) {
      for (const { result, world: changed, rendered } of resultsOf(model, world, call)) {
        const reached = await replayer.step(place, call.index, result)
        const { point, state } = await runImmediateCalls(model, replayer, {
          point: reached,
          ...changed,
        })
        const next = withProgress(model, { ...changed, state }, { i, point })
        const outcome =
          point.outcome === undefined ? '' : `, outcome: ${JSON.stringify(point.outcome)}`
        steps.push({ label: `${name}: ${call.op.join(' ')} -> ${rendered}${outcome}`, world: next })
      }
    }
    if (world.crashes === 0 || place.history.length === 0) continue
    const { crashes, faults } = world
    const crashed = {
      ...withAbandonedCalls(world, place),
      crashes: crashes - 1,
      faults: faults + 1,
    }
    steps.push({ label: `${name}: crash`, world: at(crashed, i, 'crashed') })
  }
  return [...steps, ...inFlightWrites(model, world), ...eventsOf(model, world)]
}

/** Runs the process through its `now` calls, up to the next call of another kind. */
async function runImmediateCalls<S>(
  model: Model<S>,
  replayer: Replayer,
  from: { point: Point; state: S },
): Promise<{ point: Point; state: S }> {
  let { point, state } = from
  for (;;) {
    const call = point.pending.find(({ kind }) => kind === 'now')
    if (call === undefined) return { point, state }
    const effect = model.apply(state, call.op)
    point = await replayer.step(point, call.index, effect.result)
    state = effect.state
  }
}

/** The possible results of a call. A write that times out may be applied later, or never. */
function resultsOf<S>(
  model: Model<S>,
  world: World<S>,
  { kind, op }: PendingCall,
): { result: Result; world: World<S>; rendered: string }[] {
  const { state, result } = model.apply(world.state, op)
  const completed = { result, world: { ...world, state }, rendered: JSON.stringify(result) }
  if (kind === 'local' || kind === 'now' || world.timeouts === 0) return [completed]
  const lost = {
    ...world,
    inFlight: withWrites(world.inFlight, kind === 'write' ? [op] : []),
    timeouts: world.timeouts - 1,
    faults: world.faults + 1,
  }
  return [completed, { result: UNKNOWN, world: lost, rendered: 'timeout' }]
}

function withProgress<S>(
  model: Model<S>,
  world: World<S>,
  { i, point }: { i: number; point: Point },
): World<S> {
  if (point.outcome === undefined) return at(world, i, point)
  const state = model.finish(world.state, point.process.name, point.outcome)
  return at({ ...withAbandonedCalls(world, point), state }, i, 'done')
}

function at<S>(world: World<S>, i: number, place: Place): World<S> {
  return { ...world, places: world.places.with(i, place) }
}

/** The process has stopped, but its pending writes stay in flight. */
function withAbandonedCalls<S>(world: World<S>, { pending }: Point): World<S> {
  const writes = pending.filter(({ kind }) => kind === 'write').map(({ op }) => op)
  return { ...world, inFlight: withWrites(world.inFlight, writes) }
}

function withWrites(inFlight: readonly Op[], writes: readonly Op[]): readonly Op[] {
  return writes.length === 0
    ? inFlight
    : [...inFlight, ...writes].sort((a, b) => (String(a) < String(b) ? -1 : 1))
}

function inFlightWrites<S>(model: Model<S>, world: World<S>): Step<S>[] {
  return world.inFlight.map((op, i) => {
    const inFlight = world.inFlight.toSpliced(i, 1)
    return {
      label: `delayed write: ${op.join(' ')}`,
      world: { ...world, ...model.apply(world.state, op), inFlight },
    }
  })
}

function eventsOf<S>(model: Model<S>, world: World<S>): Step<S>[] {
  const events = model.events?.(world.state) ?? []
  return events.map(({ label, state }) => ({ label, world: { ...world, state } }))
}
