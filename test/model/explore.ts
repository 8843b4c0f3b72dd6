// An explicit-state explorer, breadth first, so that a trace is a shortest one. Real code runs
// between the calls of its stores (replay.ts); what the calls do is a model's; here it is chosen
// what happens next: an answer, a lost answer, a late landing, a crash. Random walks go deeper.
import {
  type Answer,
  createReplayer,
  type Json,
  type Op,
  type PendingCall,
  type Point,
  type Process,
  type Replayer,
  UNKNOWN,
} from './replay.ts'

/** What the stores hold and do. A state is a value and is never changed. */
export interface Model<S> {
  readonly initial: S
  /** The atomic effect of one call, and its answer. */
  apply(state: S, op: Op): { readonly state: S; readonly answer: Json }
  /** A process has ended with this outcome. */
  finish(state: S, process: string, outcome: Json): S
  /** What may happen besides the processes. */
  events?(state: S): readonly { readonly label: string; readonly state: S }[]
  /** The promises that do not hold; `quiet` = every process has ended or crashed. */
  broken(state: S, seen: { readonly quiet: boolean; readonly faults: number }): readonly string[]
}

/** What is explored, and how many faults there may be. */
export interface Scenario<S> {
  readonly model: Model<S>
  readonly processes: readonly Process[]
  readonly unknowns: number
  readonly crashes: number
  readonly statesMax?: number
}

/** What was found. */
export interface Exploration {
  /** A shortest trace to each promise that was broken. */
  readonly violations: ReadonlyMap<string, readonly string[]>
  readonly states: number
  /** Different runs of the real code. */
  readonly executions: number
  /** Whether every state within the bounds has been seen. */
  readonly complete: boolean
}

type Place = Point | 'done' | 'dead'

interface World<S> {
  readonly state: S
  readonly limbo: readonly Op[]
  readonly faults: number
  readonly unknowns: number
  readonly crashes: number
  readonly places: readonly Place[]
}

interface Step<S> {
  readonly label: string
  readonly world: World<S>
}

const STATES_MAX = 1_000_000

/** Explores every interleaving within the bounds; stops at the first violation if so asked. */
export async function explore<S>(
  scenario: Scenario<S>,
  options: { readonly stopAtFirst?: boolean } = {},
): Promise<Exploration> {
  const replayer = createReplayer()
  const worlds: (World<S> | undefined)[] = [await beginning(scenario, replayer)]
  const cameFrom: { readonly from: number; readonly label: string }[] = [{ from: -1, label: '' }]
  const seen = new Set<string>(worlds.map((world) => (world === undefined ? '' : keyOf(world))))
  const violations = new Map<string, readonly string[]>()
  const traceTo = (at: number): string[] => {
    const labels: string[] = []
    for (let i = at; i > 0; i = cameFrom[i]?.from ?? 0) labels.unshift(cameFrom[i]?.label ?? '')
    return labels
  }
  const ended = (complete: boolean): Exploration => {
    return { violations, states: worlds.length, executions: replayer.executions(), complete }
  }
  for (let at = 0; at < worlds.length; at++) {
    const world = worlds[at]
    if (world === undefined) continue
    worlds[at] = undefined
    const broken = brokenIn(scenario.model, world)
    for (const promise of broken) {
      if (!violations.has(promise)) violations.set(promise, traceTo(at))
    }
    if (broken.length > 0 && options.stopAtFirst === true) return ended(true)
    if (broken.length > 0) continue
    if (worlds.length > (scenario.statesMax ?? STATES_MAX)) return ended(false)
    for (const { label, world: next } of await stepsFrom(scenario.model, world, replayer)) {
      const key = keyOf(next)
      if (seen.has(key)) continue
      seen.add(key)
      worlds.push(next)
      cameFrom.push({ from: at, label })
    }
  }
  return ended(true)
}

/** Goes one random way after another, `random` giving numbers from 0 below 1. */
export async function walk<S>(
  scenario: Scenario<S>,
  options: { readonly walks: number; readonly random: () => number },
): Promise<Exploration> {
  const replayer = createReplayer()
  const first = await beginning(scenario, replayer)
  const violations = new Map<string, readonly string[]>()
  let states = 0
  for (let i = 0; i < options.walks; i++) {
    const labels: string[] = []
    let world = first
    for (;;) {
      states++
      for (const promise of brokenIn(scenario.model, world)) {
        if (!violations.has(promise)) violations.set(promise, [...labels])
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

async function beginning<S>(scenario: Scenario<S>, replayer: Replayer): Promise<World<S>> {
  const { model, processes, unknowns, crashes } = scenario
  const places: Point[] = []
  for (const process of processes) places.push(await replayer.begin(process))
  return { state: model.initial, limbo: [], faults: 0, unknowns, crashes, places }
}

function keyOf<S>({ state, limbo, unknowns, crashes, places }: World<S>): string {
  const ids = places.map((place) => (typeof place === 'string' ? place : place.id))
  return JSON.stringify([state, limbo, unknowns, crashes, ids])
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
      for (const { answer, world: changed, says } of answersTo(model, world, call)) {
        const reached = await replayer.step(place, call.index, answer)
        const { point, state } = await tellNow(model, replayer, { point: reached, ...changed })
        const next = arrived(model, { ...changed, state }, { i, point })
        const end = point.outcome === undefined ? '' : `, ends: ${JSON.stringify(point.outcome)}`
        steps.push({ label: `${name}: ${call.op.join(' ')} -> ${says}${end}`, world: next })
      }
    }
    if (world.crashes === 0 || place.history.length === 0) continue
    const { crashes, faults } = world
    const crashed = { ...adrift(world, place), crashes: crashes - 1, faults: faults + 1 }
    steps.push({ label: `${name}: crashes`, world: at(crashed, i, 'dead') })
  }
  return [...steps, ...landings(model, world), ...eventsOf(model, world)]
}

/** Lets the process go on over what it tells the model, until it waits for something. */
async function tellNow<S>(
  model: Model<S>,
  replayer: Replayer,
  from: { point: Point; state: S },
): Promise<{ point: Point; state: S }> {
  let { point, state } = from
  for (;;) {
    const call = point.pending.find(({ kind }) => kind === 'now')
    if (call === undefined) return { point, state }
    const told = model.apply(state, call.op)
    point = await replayer.step(point, call.index, told.answer)
    state = told.state
  }
}

/** How a call may end. Of a write whose answer is lost it is open whether and when it is done. */
function answersTo<S>(
  model: Model<S>,
  world: World<S>,
  { kind, op }: PendingCall,
): { answer: Answer; world: World<S>; says: string }[] {
  const { state, answer } = model.apply(world.state, op)
  const answered = { answer, world: { ...world, state }, says: JSON.stringify(answer) }
  if (kind === 'local' || kind === 'now' || world.unknowns === 0) return [answered]
  const lost = {
    ...world,
    limbo: withWrites(world.limbo, kind === 'write' ? [op] : []),
    unknowns: world.unknowns - 1,
    faults: world.faults + 1,
  }
  return [answered, { answer: UNKNOWN, world: lost, says: '?' }]
}

function arrived<S>(
  model: Model<S>,
  world: World<S>,
  { i, point }: { i: number; point: Point },
): World<S> {
  if (point.outcome === undefined) return at(world, i, point)
  const state = model.finish(world.state, point.process.name, point.outcome)
  return at({ ...adrift(world, point), state }, i, 'done')
}

function at<S>(world: World<S>, i: number, place: Place): World<S> {
  return { ...world, places: world.places.with(i, place) }
}

/** The process is no more, but the writes it has sent are on their way. */
function adrift<S>(world: World<S>, { pending }: Point): World<S> {
  const writes = pending.filter(({ kind }) => kind === 'write').map(({ op }) => op)
  return { ...world, limbo: withWrites(world.limbo, writes) }
}

function withWrites(limbo: readonly Op[], writes: readonly Op[]): readonly Op[] {
  return writes.length === 0
    ? limbo
    : [...limbo, ...writes].sort((a, b) => (String(a) < String(b) ? -1 : 1))
}

function landings<S>(model: Model<S>, world: World<S>): Step<S>[] {
  return world.limbo.map((op, i) => {
    const limbo = world.limbo.toSpliced(i, 1)
    return {
      label: `${op.join(' ')} lands`,
      world: { ...world, ...model.apply(world.state, op), limbo },
    }
  })
}

function eventsOf<S>(model: Model<S>, world: World<S>): Step<S>[] {
  const events = model.events?.(world.state) ?? []
  return events.map(({ label, state }) => ({ label, world: { ...world, state } }))
}
