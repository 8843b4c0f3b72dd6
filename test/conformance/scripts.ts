// The reference's integration scripts, unmodified, each against a fresh stack. A script that fails
// while calls of the service timed out in Envoy is retried alone: the machine was too slow.
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStack, type StackEnd } from './run-in-stack.ts'
import type { StackTask } from './stack-task.ts'
import type { Outcome } from './outcome.ts'

const SCRIPT_MS_MAX = 150_000
const TRIES_MAX = 3
/** Between the starts of scripts, so that they do not all ask in the same moment. */
const STAGGER_MS = 500
/** The scripts count within minutes of the clock: none starts after this second of one. */
const LAST_SECOND = 30

/** Makes the task of a stack of that name which runs these commands. */
export type TaskOf = (
  name: string,
  given: Pick<StackTask, 'commands' | 'commandMsMax'>,
) => Promise<StackTask>

interface Script {
  readonly name: string
  readonly path: string
}

/** Runs them all and resolves to an outcome for each. */
export async function runScripts(given: {
  readonly reference: string
  readonly taskOf: TaskOf
  readonly log: (line: string) => void
}): Promise<Outcome[]> {
  const folder = join(given.reference, 'integration-test/scripts')
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sh')).toSorted()
  const scripts = files.map((file) => ({ name: basename(file), path: join(folder, file) }))
  const first = await runTogether(scripts, given.taskOf)
  const outcomes: Outcome[] = []
  for (const [at, script] of scripts.entries()) {
    let end: StackEnd = first[at] ?? { kind: 'failed', why: 'it was not run' }
    let tries = 1
    while (isLate(end) && tries < TRIES_MAX) {
      given.log(`again: ${script.name}, ${end.callsOverDeadline} calls of the service were late`)
      const [again] = await runTogether([script], given.taskOf)
      end = again ?? end
      tries++
    }
    outcomes.push(outcomeOf(script.name, end, tries))
  }
  return outcomes
}

/** Brings up a stack for each, and lets the scripts go once all are up. */
async function runTogether(scripts: readonly Script[], taskOf: TaskOf): Promise<StackEnd[]> {
  const stacks = await Promise.all(
    scripts.map(async ({ name, path }) => {
      const command = { commands: [['bash', path]], commandMsMax: SCRIPT_MS_MAX }
      return openStack(await taskOf(name, command))
    }),
  )
  const second = new Date().getUTCSeconds()
  if (second > LAST_SECOND) await sleep((61 - second) * 1000)
  return Promise.all(
    stacks.map(async (stack, at) => {
      await sleep(at * STAGGER_MS)
      return stack.go()
    }),
  )
}

function hasPassed(end: StackEnd): boolean {
  if (end.kind === 'failed' || !end.isAlive || end.charges === 0) return false
  return end.ended.every(({ exitCode }) => exitCode === 0)
}

function isLate(end: StackEnd): end is Extract<StackEnd, { kind: 'done' }> {
  return !hasPassed(end) && end.kind === 'done' && end.callsOverDeadline > 0
}

function outcomeOf(name: string, end: StackEnd, tries: number): Outcome {
  if (end.kind === 'failed') return { name, hasPassed: false, detail: end.why }
  const { callsOverDeadline, stopped, isAlive, charges } = end
  const late =
    callsOverDeadline === 0 ? '' : `; ${callsOverDeadline} calls of the service were late`
  const ms = end.ended.reduce((sum, { ms: each }) => sum + each, 0)
  const facts = `${(ms / 1000).toFixed(1)} s, try ${tries}; service ${stopped}${late}`
  const alone = charges > 0 ? '' : '\nthe service counted nothing in Redis'
  if (hasPassed(end)) return { name, hasPassed: true, detail: facts }
  const died = isAlive ? '' : '\nthe service ended during the script'
  const said = end.ended.map(({ exitCode, output }) => `\nexit code ${exitCode}:\n${output}`)
  return { name, hasPassed: false, detail: `${facts}${died}${alone}${said.join('')}` }
}
