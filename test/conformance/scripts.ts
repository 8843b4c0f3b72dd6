// The reference's integration scripts, unmodified, each against its own stack. A script that fails
// while calls of the service timed out in Envoy is retried alone: the machine was too slow.
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStack, type StackResult } from './run-in-stack.ts'
import type { StackTask } from './stack-task.ts'
import type { Outcome } from './outcome.ts'

const SCRIPT_MS_MAX = 150_000
const TRIES_MAX = 3
/** The delay between the starts of scripts, so that they do not send all requests together. */
const STAGGER_MS = 500
/** The scripts count in windows of one minute: none starts after this second of a minute. */
const LAST_SECOND = 30

/** Creates the task of a stack with a name and the commands to run. */
export type TaskOf = (
  name: string,
  given: Pick<StackTask, 'commands' | 'commandMsMax'>,
) => Promise<StackTask>

interface Script {
  readonly name: string
  readonly path: string
}

/** Runs all scripts; resolves to one outcome for each. */
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
    let result: StackResult = first[at] ?? { kind: 'failed', reason: 'it was not run' }
    let tries = 1
    while (isTimedOut(result) && tries < TRIES_MAX) {
      given.log(`retry: ${script.name}, ${result.callsTimedOut} calls of the service timed out`)
      const [retried] = await runTogether([script], given.taskOf)
      result = retried ?? result
      tries++
    }
    outcomes.push(outcomeOf(script.name, result, tries))
  }
  return outcomes
}

/** Starts a stack for each script, and runs the scripts when all stacks are ready. */
async function runTogether(scripts: readonly Script[], taskOf: TaskOf): Promise<StackResult[]> {
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

function hasPassed(result: StackResult): boolean {
  if (result.kind === 'failed' || !result.isAlive || result.hits === 0) return false
  return result.commandResults.every(({ exitCode }) => exitCode === 0)
}

function isTimedOut(result: StackResult): result is Extract<StackResult, { kind: 'done' }> {
  return !hasPassed(result) && result.kind === 'done' && result.callsTimedOut > 0
}

function outcomeOf(name: string, result: StackResult, tries: number): Outcome {
  if (result.kind === 'failed') return { name, hasPassed: false, detail: result.reason }
  const { callsTimedOut, stopped, isAlive, hits } = result
  const timeouts = callsTimedOut === 0 ? '' : `; ${callsTimedOut} calls of the service timed out`
  const ms = result.commandResults.reduce((sum, { ms: each }) => sum + each, 0)
  const facts = `${(ms / 1000).toFixed(1)} s, try ${tries}; service ${stopped}${timeouts}`
  const uncounted = hits > 0 ? '' : '\nthe service counted nothing in Redis'
  if (hasPassed(result)) return { name, hasPassed: true, detail: facts }
  const exited = isAlive ? '' : '\nthe service exited during the script'
  const outputs = result.commandResults.map(
    ({ exitCode, output }) => `\nexit code ${exitCode}:\n${output}`,
  )
  return { name, hasPassed: false, detail: `${facts}${exited}${uncounted}${outputs.join('')}` }
}
