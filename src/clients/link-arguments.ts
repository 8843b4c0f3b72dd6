// The arguments of the `link` commands for many links.
import { parseArgs } from 'node:util'
import { UsageError } from '../process/role.ts'
import { messageOf } from '../resilience/message-of.ts'
import { parseRate } from './parse-rate.ts'

const LIST_RATE_DEFAULT = 5000
const CHANGE_RATE_DEFAULT = 200
const states: readonly string[] = ['active', 'expired', 'disabled', 'deleted']

/** The options of each command. */
const optionsOf = {
  list: ['creator', 'target-host', 'state', 'after', 'rate', 'json'],
  disable: [
    ...['from-file', 'creator', 'target-host', 'after', 'after-line', 'rate'],
    ...['dry-run', 'json'],
  ],
  enable: ['from-file', 'after-line', 'rate', 'dry-run', 'json'],
} as const

const flags: readonly string[] = ['dry-run', 'json']
const selectors = ['from-file', 'creator', 'target-host'] as const

/** A command for many links. */
export type BulkVerb = keyof typeof optionsOf

/** The links to select: those that match every member. */
export interface Selection {
  /** A decimal number. */
  readonly creator: string | undefined
  /** A host as the parser normalizes it. */
  readonly host: string | undefined
  readonly state: string | undefined
}

/** The arguments of a command for many links. */
export interface BulkArguments {
  readonly selection: Selection
  /** A file of codes, or `-` for the standard input. */
  readonly file: string | undefined
  readonly after: string | undefined
  readonly afterLine: number
  readonly rate: number
  readonly isDryRun: boolean
  readonly isJson: boolean
}

/** The syntax of values. */
interface Syntax {
  readonly isCode: (value: string) => boolean
  /** The normalized host; `undefined` if it is invalid. */
  readonly parseHost: (value: string) => string | undefined
}

/** Whether this is a command for many links, perhaps only with an option. */
export function isBulkVerb(verb: string | undefined): verb is BulkVerb {
  return verb !== undefined && Object.hasOwn(optionsOf, verb)
}

/** Whether an option other than --json is given; after `--` they are codes. */
export function hasBulkOption(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  const given = args.slice(0, end < 0 ? undefined : end)
  return given.some((arg) => /^--[a-z]/.test(arg) && arg !== '--json')
}

/** Parses the arguments, of which the first one is a BulkVerb. Throws UsageError. */
export function parseBulkArgs(args: readonly string[], syntax: Syntax): BulkArguments {
  const [verb] = args
  if (!isBulkVerb(verb)) throw new UsageError(`link has no command ${quote(verb)}`)
  const values = readValues(verb, args.slice(1))
  if (verb !== 'list') checkSelectors(verb, values)
  const { rate = String(verb === 'list' ? LIST_RATE_DEFAULT : CHANGE_RATE_DEFAULT) } = values
  return {
    selection: selectionOf(verb, values, syntax),
    file: values['from-file'],
    after: parseAfter(values.after, syntax),
    afterLine: parseLine(values['after-line']),
    rate: parseRate(rate),
    isDryRun: values['dry-run'] !== undefined,
    isJson: values.json !== undefined,
  }
}

type Name = (typeof optionsOf)[BulkVerb][number]
/** The value of each given option; that of a flag is not used. */
type Values = Partial<Record<Name, string>>

function readValues(verb: BulkVerb, args: readonly string[]): Values {
  const names = optionsOf[verb]
  const options = names.map((name) => {
    return [name, { type: flags.includes(name) ? 'boolean' : 'string' }] as const
  })
  const allowed = `link ${verb} takes ${names.map((name) => `--${name}`).join(', ')}`
  try {
    const { values, positionals, tokens } = parseArgs({
      args: [...args],
      options: Object.fromEntries(options),
      allowPositionals: true,
      tokens: true,
    })
    const [positional] = positionals
    if (positional !== undefined) {
      throw new Error(`it takes no CODE with these, but ${quote(positional)} is given`)
    }
    const given = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []))
    const repeated = given.find((name, at) => given.indexOf(name) !== at)
    if (repeated === undefined) return values
    throw new Error(`--${repeated} is given more than once`)
  } catch (error) {
    const [reason] = messageOf(error).split(/[.\n]/)
    throw new UsageError(`${allowed}: ${reason}`)
  }
}

function checkSelectors(verb: 'disable' | 'enable', values: Values): void {
  const allowed = optionsOf[verb].filter((name) => selectors.some((one) => one === name))
  const given = allowed.filter((name) => values[name] !== undefined)
  if (given.length !== 1) {
    const list = allowed.map((name) => `--${name}`).join(', ')
    const which =
      given.length === 0 ? 'none is' : `${given.map((name) => `--${name}`).join(', ')} are`
    const required = allowed.length === 1 ? list : `exactly one of ${list}`
    throw new UsageError(`link ${verb} for many links requires ${required}: ${which} given`)
  }
  const isList = values['from-file'] !== undefined
  if (isList && values.after !== undefined) {
    throw new UsageError('--after does not apply to --from-file: use --after-line')
  }
  if (!isList && values['after-line'] !== undefined) {
    throw new UsageError('--after-line requires --from-file: use --after')
  }
}

function selectionOf(verb: BulkVerb, values: Values, { parseHost }: Syntax): Selection {
  const { creator, state } = values
  if (creator !== undefined && !/^-?\d{1,19}$/.test(creator)) {
    throw new UsageError(`--creator must be a decimal integer: it is ${quote(creator)}`)
  }
  if (state !== undefined && !states.includes(state)) {
    throw new UsageError(`--state must be one of ${states.join(', ')}: it is ${quote(state)}`)
  }
  const { 'target-host': given } = values
  const host = given === undefined ? undefined : parseHost(given)
  const fault = given === undefined ? undefined : hostFaultOf(verb, given, host)
  if (fault !== undefined) throw new UsageError(`--target-host ${fault}: it is ${quote(given)}`)
  return { creator: creator === undefined ? undefined : String(BigInt(creator)), host, state }
}

/** Why the host, `undefined` if it is invalid, does not select the links that are meant. */
function hostFaultOf(verb: BulkVerb, given: string, host: string | undefined): string | undefined {
  if (host === undefined) return 'must be a host such as evil.example'
  if (host.includes('*') || host.startsWith('.')) {
    return 'must not be a pattern (a host includes all its subdomains)'
  }
  if (host.includes(',')) return 'must be one host'
  if (/:\d*$/.test(given)) return 'must not have a port (all ports are selected)'
  const isIpv6 = host.startsWith('[')
  if (verb === 'list' || host.includes('.') || isIpv6 || host === 'localhost') return undefined
  return 'must not be a host of one label, such as a top-level domain'
}

function parseAfter(after: string | undefined, { isCode }: Syntax): string | undefined {
  if (after === undefined || isCode(after)) return after
  throw new UsageError(`--after must be a code, as an error prints it: it is ${quote(after)}`)
}

function parseLine(line = '0'): number {
  if (/^\d{1,9}$/.test(line)) return Number(line)
  throw new UsageError(`--after-line must be the number of a line: it is ${quote(line)}`)
}

const quote = (value: string | undefined) => JSON.stringify(value)
