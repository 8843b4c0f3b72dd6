// The reference's own client, a binary of its src/client_cmd that the operator has built, against
// our service: its calls must receive the responses that the reference's example rules define.
import type { Outcome } from './outcome.ts'
import { openStack } from './run-in-stack.ts'
import type { TaskOf } from './scripts.ts'
import type { CommandResult } from './stack-task.ts'

const CALL_MS_MAX = 20_000

interface Call {
  readonly name: string
  readonly domain: string
  readonly descriptors: readonly string[]
  readonly exitCode: number
  /** The pattern that its output must match. */
  readonly outputPattern: RegExp
}

// The rule foo + bar=bkthomps of the example admits one call a minute, foo + bar=banned none.
const calls: readonly Call[] = [
  {
    name: 'a call within its limit',
    domain: 'rl',
    descriptors: ['foo=client,bar=bkthomps'],
    exitCode: 0,
    outputPattern: /overall_code:\s*OK\b.*requests_per_unit:\s*1\s+unit:\s*MINUTE/,
  },
  {
    name: 'a call above its limit',
    domain: 'rl',
    descriptors: ['foo=client,bar=bkthomps'],
    exitCode: 0,
    outputPattern: /overall_code:\s*OVER_LIMIT\b.*duration_until_reset:\s*\{\s*seconds:\s*\d+/,
  },
  {
    name: 'two descriptors, one of them banned',
    domain: 'rl',
    descriptors: ['qux=any', 'foo=client,bar=banned'],
    exitCode: 0,
    outputPattern: /overall_code:\s*OVER_LIMIT\b.*code:\s*OK\b.*code:\s*OVER_LIMIT\b/,
  },
  {
    name: 'a domain without rules',
    domain: 'nowhere',
    descriptors: ['foo=client'],
    exitCode: 0,
    outputPattern: /overall_code:\s*OK\s+statuses:\s*\{\s*code:\s*OK\s*\}/,
  },
  {
    name: 'no domain',
    domain: '',
    descriptors: ['foo=client'],
    exitCode: 1,
    outputPattern: /request error: .*rate limit domain must not be empty/,
  },
  {
    name: 'no descriptor',
    domain: 'rl',
    descriptors: [],
    exitCode: 1,
    outputPattern: /request error: .*rate limit descriptor list must not be empty/,
  },
]

/** Runs the client's calls; fails if no binary is configured. */
export async function runClient(client: string | undefined, taskOf: TaskOf): Promise<Outcome[]> {
  const nameOf = ({ name }: Call) => `client_cmd: ${name}`
  if (client === undefined || client === '') {
    const detail = 'REFERENCE_CLIENT must name a binary of src/client_cmd of the reference'
    return [{ name: 'client_cmd', hasPassed: false, detail }]
  }
  const commands = calls.map((call) => [client, ...argumentsOf(call)])
  const stack = await openStack(await taskOf('client', { commands, commandMsMax: CALL_MS_MAX }))
  const result = await stack.go()
  if (result.kind === 'failed')
    return [{ name: 'client_cmd', hasPassed: false, detail: result.reason }]
  if (result.hits === 0) {
    const detail = 'the service counted nothing in Redis'
    return [{ name: 'client_cmd', hasPassed: false, detail }]
  }
  return calls.map((call, at) => outcomeOf(call, nameOf(call), result.commandResults[at]))
}

function argumentsOf({ domain, descriptors }: Call): string[] {
  const each = descriptors.flatMap((descriptor) => ['-descriptors', descriptor])
  return ['-dial_string', '127.0.0.1:8081', '-domain', domain, ...each]
}

function outcomeOf(call: Call, name: string, result: CommandResult | undefined): Outcome {
  if (result === undefined) return { name, hasPassed: false, detail: 'it was not run' }
  const { exitCode, output } = result
  const hasPassed = exitCode === call.exitCode && call.outputPattern.test(output)
  return {
    name,
    hasPassed,
    detail: hasPassed ? 'as expected' : `exit code ${exitCode}:\n${output}`,
  }
}
