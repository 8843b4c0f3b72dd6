// Runs one role: parses the command line, passes the environment to the role, stops it on a signal,
// and maps its result to an exit code. Also prints the help and the completion of shells.
import { styleText } from 'node:util'
import { ConfigError, type Environment } from '../config/config.ts'
import { flushed } from '../telemetry/log-output.ts'
import { stopTracing } from '../telemetry/tracing.ts'
import { section } from './command-help.ts'
import { parseCommand, selectCommand } from './command-line.ts'
import { completionCommands, completionHelp, renderCompletion } from './completion.ts'
import { hintOf } from './nearest.ts'
import { hasHelpFlag, OperatorError, type Role, stopStarted, UsageError } from './role.ts'
import { stopOnSignal } from './stop.ts'
import { version } from './version.ts'
import { allocateInYoungGeneration, keepTicksFast } from './v8-workarounds.ts'

type LoadRole = () => Promise<{ readonly role: Role }>

/** What a role does in a few words, and how to load it, or the module of each of its commands. */
type RoleEntry = readonly [about: string, load: LoadRole | Readonly<Record<string, LoadRole>>]

/** The roles by name, in the groups of the usage. */
export type RoleGroups = Readonly<Record<string, Readonly<Record<string, RoleEntry>>>>

/** Another name of a role, with settings that apply unless the environment sets them. */
interface Alias {
  readonly program: string
  readonly role: string
  readonly defaults: Readonly<Record<string, string>>
}

/** How the process was started. */
interface Invocation {
  /** The name of a role and its arguments. */
  readonly args: readonly string[]
  readonly env: Environment
  readonly alias: Alias
}

const helpHelp =
  'Usage: curtail help [ROLE [COMMAND]]\n\n' +
  'Prints the help of a role, or of one of its commands; without ROLE, lists the roles.\n'

/** Roles of the program itself. */
const ownRoles: Readonly<Record<string, string>> = {
  help: 'prints the help of a role, or of one of its commands',
  completion: 'prints the script that completes commands in bash or zsh',
}

/**
 * Runs a role until it completes or is stopped. Exits with the role's exit code, with 1 for a
 * failure, or with 2 for wrong usage or configuration.
 */
export async function runProgram(groups: RoleGroups, invocation: Invocation): Promise<void> {
  keepTicksFast()
  // A closed pipe must not stop the process. Each write reports its error to its own caller.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  try {
    const { args, env, alias } = invocation
    const [program, ...rest] = args
    const isAlias = program === alias.program
    const line = isAlias ? [alias.role, ...rest] : args
    const output = await renderOwn(groups, line)
    if (output === undefined)
      await run(groups, line, isAlias ? withDefaults(env, alias.defaults) : env)
    else process.stdout.write(output)
  } catch (error) {
    printError(error)
    process.exit(error instanceof ConfigError || error instanceof UsageError ? 2 : 1)
  }
}

/** The output of the program itself, such as its help; `undefined` if a role runs. */
async function renderOwn(
  groups: RoleGroups,
  [name = '', ...args]: readonly string[],
): Promise<string | undefined> {
  if (name === '--version') return `curtail ${version} (Node.js ${process.version})\n`
  if (hasHelpFlag([name])) return usageOf(groups)
  if (name === 'completion' && !hasHelpFlag(args)) {
    const { command } = parseCommand(name, completionCommands, args)
    return renderCompletion(command, await describeRoles(groups))
  }
  const topic = name === 'help' ? args : [name, ...args]
  if (name !== 'help' && !hasHelpFlag(args)) return undefined
  const [role] = topic
  if (role === undefined) return usageOf(groups)
  if (role === 'help' || hasHelpFlag([role])) return helpHelp
  return role === 'completion' ? completionHelp : await helpOf(groups, topic)
}

async function run(
  groups: RoleGroups,
  [name = '', ...args]: readonly string[],
  env: Environment,
): Promise<void> {
  const role = await loadRole(findRole(groups, name), name, args)
  const stopping = new AbortController()
  const starting = role.start({ env, args, signal: stopping.signal })
  const stop = () => {
    stopping.abort()
    return stopStarted(starting).finally(stopTracing).finally(flushStdout)
  }
  let stopMsMax: number | undefined
  stopOnSignal({
    stop,
    onFailure: printError,
    onTimeout: (ms) => {
      printError(new OperatorError(`not stopped within ${ms} ms: exiting`))
    },
    msMax: () => stopMsMax,
  })
  const started = await starting
  if (!('exitCode' in started)) {
    stopMsMax = started.stopMsMax
    allocateInYoungGeneration()
    return
  }
  await stopTracing()
  await flushStdout()
  process.exit(started.exitCode) // even if a driver left handles open
}

/** Throws UsageError for an unknown role. */
function findRole(groups: RoleGroups, name: string): RoleEntry {
  for (const roles of Object.values(groups)) {
    const entry = Object.hasOwn(roles, name) ? roles[name] : undefined
    if (entry !== undefined) return entry
  }
  const names = Object.values(groups).flatMap((roles) => Object.keys(roles))
  const list = 'curtail --help lists the roles'
  if (name === '') throw new UsageError(`no ROLE is given, such as standalone or link; ${list}`)
  const hint = hintOf(name, [...names, ...Object.keys(ownRoles)])
  throw new UsageError(`unknown role ${JSON.stringify(name)}; ${list}${hint}`)
}

/** Loads a role, or only its command's module. Throws UsageError for an unknown command. */
async function loadRole([, load]: RoleEntry, name: string, args: readonly string[]): Promise<Role> {
  if (typeof load === 'function') return (await load()).role
  const command = load[selectCommand(name, load, args).name]
  if (command === undefined) throw new UsageError(`${name} has no such command`)
  return (await command()).role
}

/** All modules of a role. */
async function loadAll([, load]: RoleEntry): Promise<readonly Role[]> {
  const modules = await Promise.all(
    (typeof load === 'function' ? [load] : Object.values(load)).map((one) => one()),
  )
  return modules.map(({ role }) => role)
}

/** The help of a role, or of one of its commands. Throws UsageError. */
async function helpOf(
  groups: RoleGroups,
  [name = '', command]: readonly string[],
): Promise<string> {
  const roles = await loadAll(findRole(groups, name))
  const role = roles.find(({ commands }) => Object.hasOwn(commands, command ?? ''))
  if (role !== undefined) return role.renderHelp(command)
  return roles.map((one) => one.renderHelp()).join('\n')
}

async function describeRoles(groups: RoleGroups) {
  const entries = Object.values(groups).flatMap((roles) => Object.entries(roles))
  const described = entries.map(async ([name, entry]) => {
    const roles = await loadAll(entry)
    const commands = Object.fromEntries(roles.flatMap((role) => Object.entries(role.commands)))
    return { name, about: entry[0], commands }
  })
  const own = [
    { name: 'help', about: ownRoles['help'] ?? '', commands: helpCommands(entries) },
    { name: 'completion', about: ownRoles['completion'] ?? '', commands: completionCommands },
  ]
  return [...(await Promise.all(described)), ...own]
}

const helpCommands = (entries: readonly (readonly [string, RoleEntry])[]) =>
  Object.fromEntries(entries.map(([name, [about]]) => [name, { about }]))

function usageOf(groups: RoleGroups): string {
  const roles = Object.entries(groups).map(([heading, group]) =>
    section(
      heading,
      Object.entries(group).map(([name, [about]]) => [name.padEnd(NAME_WIDTH), about]),
    ),
  )
  return [
    'Usage: curtail ROLE [ARGUMENTS]\n',
    '       curtail help ROLE [COMMAND]\n',
    '       curtail --version\n',
    ...roles,
    section(
      'Help',
      Object.entries(ownRoles).map(([name, about]) => [name.padEnd(NAME_WIDTH), about]),
    ),
    '\ncurtail ROLE --help prints the arguments and settings of a role.\n',
  ].join('')
}

function withDefaults(env: Environment, defaults: Alias['defaults']): Environment {
  const missing = Object.entries(defaults).filter(([name]) => (env[name] ?? '') === '')
  return { ...env, ...Object.fromEntries(missing) }
}

/** The width of the names in the usage: the same in all groups. */
const NAME_WIDTH = 'ratelimit-check'.length

const flushStdout = () => flushed(process.stdout)

function printError(error: unknown): void {
  const expected = [ConfigError, UsageError, OperatorError].some((type) => error instanceof type)
  const message = expected ? (error as Error).message : ((error as Error).stack ?? String(error))
  const prefix = styleText('red', 'curtail:', { stream: process.stderr })
  for (const line of message.split('\n')) process.stderr.write(`${prefix} ${line}\n`)
}
