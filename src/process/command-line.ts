// The arguments of a role. One declaration of its commands, operands and options is used to parse
// them, and to render the help and the shell completion.
import { parseArgs } from 'node:util'
import { hintOf } from './nearest.ts'
import { UsageError } from './usage-error.ts'

/** An option. */
export interface Flag {
  readonly about: string
  /** The name of its value, such as `FILE`; an option without it has no value. */
  readonly value?: string
  /** The allowed values. */
  readonly values?: readonly string[]
  readonly isMultiple?: true
  readonly isRequired?: true
}

/** One command of a role. */
export interface Command {
  /** What it does, in a few words. */
  readonly about: string
  /** Such as `CODE`, `[CODE]` if it is optional, or `NAME...` for at least one. */
  readonly operands?: readonly string[]
  readonly flags?: Readonly<Record<string, Flag>>
}

/** The commands by name. A role without commands has one, whose name is empty. */
export type Commands = Readonly<Record<string, Command>>

/** The option of every command that prints results. */
export const jsonFlag = {
  json: { about: 'prints JSON' },
} as const satisfies Command['flags']

/** The option of commands that send an operator's name; it takes precedence over OPERATOR. */
export const operatorFlag = {
  operator: { about: 'name of the operator in the audit log, by default OPERATOR', value: 'NAME' },
} as const satisfies Command['flags']

type FlagsOf<C extends Command> = C extends { readonly flags: infer F } ? F : unknown
type ValueOf<F> = F extends { readonly isMultiple: true }
  ? readonly string[]
  : F extends { readonly isRequired: true }
    ? string
    : F extends { readonly value: string }
      ? string | undefined
      : boolean

/** The parsed arguments: the command, its operands, and the values of its options. */
export type Parsed<C extends Commands> = {
  [K in keyof C & string]: {
    readonly command: K
    readonly operands: readonly string[]
    readonly flags: { readonly [N in keyof FlagsOf<C[K]>]: ValueOf<FlagsOf<C[K]>[N]> }
  }
}[keyof C & string]

/** Parses the arguments of `role`. Throws UsageError. */
export function parseCommand<const C extends Commands>(
  role: string,
  commands: C,
  args: readonly string[],
): Parsed<C> {
  const { name, rest } = selectCommand(role, commands, args)
  const command = commands[name] ?? { about: '' }
  const path = name === '' ? role : `${role} ${name}`
  const { operands, values } = readTokens(path, command, rest)
  checkOperands(path, command.operands ?? [], operands)
  const flags = Object.entries(command.flags ?? {}).map(([flagName, flag]) => [
    flagName,
    valueOf(path, [flagName, flag], values.get(flagName) ?? []),
  ])
  return { command: name, operands, flags: Object.fromEntries(flags) as unknown } as Parsed<C>
}

/** The command of a role, and the arguments after it. Throws UsageError. */
export function selectCommand(
  role: string,
  commands: Readonly<Record<string, unknown>>,
  args: readonly string[],
): { readonly name: string; readonly rest: readonly string[] } {
  const names = Object.keys(commands)
  if (names.join() === '') return { name: '', rest: args }
  const [name, ...rest] = args
  if (name !== undefined && Object.hasOwn(commands, name)) return { name, rest }
  const requires = `${role} requires one of the commands ${names.join(', ')}`
  if (name === undefined) throw new UsageError(`${requires}: none is given${helpHint(role)}`)
  const isOption = name.startsWith('-')
  const hint = isOption ? '; options follow the command' : hintOf(name, names)
  throw new UsageError(`${requires}: it is ${quote(name)}${hint || helpHint(role)}`)
}

type Values = Map<string, (string | undefined)[]>

/** Sorts the arguments into operands and options. Throws UsageError. */
function readTokens(path: string, command: Command, args: readonly string[]) {
  const { flags = {} } = command
  const options = Object.entries(flags).map(([name, { value }]) => {
    return [name, { type: value === undefined ? 'boolean' : 'string' }] as const
  })
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(options),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const operands: string[] = []
  const values: Values = new Map()
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value)
    if (token.kind !== 'option') continue
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined
    if (flag === undefined || !token.rawName.startsWith('--'))
      throw unknownOption(path, command, args[token.index] ?? token.rawName)
    checkValue(path, [token.name, flag], token)
    values.set(token.name, [...(values.get(token.name) ?? []), token.value])
  }
  return { operands, values }
}

function unknownOption(path: string, { flags = {}, operands = [] }: Command, given: string) {
  const names = Object.keys(flags).map((name) => `--${name}`)
  const allowed = names.length === 0 ? 'it has none' : `allowed are ${names.join(', ')}`
  const [name = ''] = given.split('=')
  const [operand] = operands
  const mustBeOption = given.startsWith('--') || operand === undefined
  const hint = mustBeOption ? '' : `; ${nameOf(operand)} that starts with - requires -- before it`
  return new UsageError(
    `${path} has no option ${name}: ${allowed}${hintOf(name, names) || hint || helpHint(path)}`,
  )
}

type OptionToken = {
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

/** Throws UsageError if a value is missing, not allowed, or given to an option without one. */
function checkValue(
  path: string,
  [name, { value: wanted, values }]: readonly [name: string, flag: Flag],
  { value, inlineValue }: OptionToken,
): void {
  if (wanted === undefined) {
    if (value === undefined) return
    throw new UsageError(`${path}: --${name} takes no value: it is ${quote(value)}`)
  }
  if (value === undefined)
    throw new UsageError(`${path}: --${name} requires a value, as in --${name}=${wanted}`)
  if (inlineValue !== true && value.startsWith('-') && value !== '-') {
    const hint = `a value that starts with - requires =, as in --${name}=${value}`
    throw new UsageError(`${path}: --${name} requires a value before ${value}; ${hint}`)
  }
  if (values === undefined || values.includes(value)) return
  const allowed = `one of ${values.join(', ')}`
  throw new UsageError(
    `--${name} must be ${allowed}: it is ${quote(value)}${hintOf(value, values)}`,
  )
}

function valueOf(
  path: string,
  [name, { value, values: allowed, isMultiple, isRequired }]: readonly [string, Flag],
  values: readonly (string | undefined)[],
): unknown {
  if (isMultiple === true) return values
  if (values.length > 1)
    throw new UsageError(`${path}: --${name} is given ${values.length} times: it is allowed once`)
  if (isRequired === true && values.length === 0) {
    const required = `--${name}=${value ?? 'VALUE'}`
    const list = allowed === undefined ? '' : `, one of ${allowed.join(', ')}`
    throw new UsageError(`${path} requires ${required}${list}: none is given`)
  }
  return value === undefined ? values.length > 0 : values[0]
}

/** Throws UsageError for missing or extra arguments. */
function checkOperands(path: string, wanted: readonly string[], given: readonly string[]): void {
  const min = wanted.filter((operand) => !operand.startsWith('[')).length
  const max = wanted.some((operand) => operand.includes('...')) ? Infinity : wanted.length
  const shown = wanted.join(' ')
  if (given.length < min) {
    const shownGiven = given.map(quote).join(' ')
    const found = given.length === 0 ? 'none is given' : `only ${shownGiven} is given`
    throw new UsageError(`${path} requires ${shown}: ${found}${helpHint(path)}`)
  }
  if (given.length <= max) return
  const extra = given.slice(max).map(quote).join(' ')
  const allowed = max === 0 ? 'takes no arguments' : `takes only ${shown}`
  throw new UsageError(`${path} ${allowed}: ${extra} is extra${helpHint(path)}`)
}

/** The article and the name of an operand, such as `a CODE`. */
const nameOf = (operand: string) => `a ${operand.replace(/[[\].|-]/g, '')}`

const helpHint = (path: string) => `; see curtail ${path} --help`

const quote = (value: string) => JSON.stringify(value)
