// The arguments of the `link` commands for many links.
import type { Parsed } from '../process/command-line.ts'
import { UsageError } from '../process/role.ts'
import { linkCommands, RATE_DEFAULTS } from './link-commands.ts'
import { parseRate } from './parse-rate.ts'

/** The parsed arguments of a `link` command. */
type LinkArguments = Parsed<typeof linkCommands>

/** A command for many links. */
type BulkVerb = 'list' | 'disable' | 'enable'

/** The parsed arguments of such a command, perhaps with one CODE. */
export type BulkArguments = Extract<LinkArguments, { command: BulkVerb }>

/** The links to select: those that match every member. */
export interface Selection {
  /** A decimal number. */
  readonly creator: string | undefined
  /** A host as the parser normalizes it. */
  readonly host: string | undefined
  readonly state: string | undefined
}

/** What a command for many links does. */
export interface BulkRequest {
  readonly verb: BulkVerb
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
export interface Syntax {
  readonly isCode: (value: string) => boolean
  /** The normalized host; `undefined` if it is invalid. */
  readonly parseHost: (value: string) => string | undefined
}

type Values = Partial<Record<string, string | boolean>>

/**
 * The request of a command for many links; `undefined` if it concerns one CODE. Throws UsageError.
 */
export function parseBulk(args: BulkArguments, syntax: Syntax): BulkRequest | undefined {
  const { command: verb, operands } = args
  const values: Values = args.flags
  if (verb !== 'list') {
    const given = Object.keys(values).filter((name) => !common.has(name) && isGiven(values[name]))
    const [code] = operands
    if (code !== undefined && given.length === 0) return undefined
    if (code !== undefined) {
      const names = given.map((name) => `--${name}`).join(', ')
      throw new UsageError(
        `link ${verb} takes a CODE or ${names}, not both: the CODE is ${quote(code)}`,
      )
    }
    checkSelectors(verb, values)
  }
  const rateDefault = verb === 'list' ? RATE_DEFAULTS.list : RATE_DEFAULTS.change
  return {
    verb,
    selection: selectionOf(verb, values, syntax),
    file: stringOf(values['from-file']),
    after: parseAfter(stringOf(values['after']), syntax),
    afterLine: parseLine(stringOf(values['after-line'])),
    rate: parseRate(values['rate'] ?? String(rateDefault)),
    isDryRun: values['dry-run'] === true,
    isJson: values['json'] === true,
  }
}

/** The options that also apply to one link. */
const common: ReadonlySet<string> = new Set(['json', 'operator'])

const isGiven = (value: string | boolean | undefined) => value !== undefined && value !== false

const stringOf = (value: string | boolean | undefined) =>
  typeof value === 'string' ? value : undefined

const selectors = ['from-file', 'creator', 'target-host'] as const

function checkSelectors(verb: 'disable' | 'enable', values: Values): void {
  const allowed = selectors.filter((name) => Object.hasOwn(linkCommands[verb].flags, name))
  const given = allowed.filter((name) => values[name] !== undefined)
  if (given.length !== 1) {
    const list = allowed.map((name) => `--${name}`).join(', ')
    const which =
      given.length === 0 ? 'none is' : `${given.map((name) => `--${name}`).join(', ')} are`
    const required = allowed.length === 1 ? list : `exactly one of ${list}`
    const orCode = given.length === 0 ? 'a CODE, or, for many links, ' : ''
    throw new UsageError(`link ${verb} requires ${orCode}${required}: ${which} given`)
  }
  const isList = values['from-file'] !== undefined
  if (isList && values['after'] !== undefined) {
    throw new UsageError('--after does not apply to --from-file: use --after-line')
  }
  if (!isList && values['after-line'] !== undefined) {
    throw new UsageError('--after-line requires --from-file: use --after')
  }
}

function selectionOf(verb: BulkVerb, values: Values, { parseHost }: Syntax): Selection {
  const creator = stringOf(values['creator'])
  const state = stringOf(values['state'])
  if (creator !== undefined && !/^-?\d{1,19}$/.test(creator)) {
    throw new UsageError(
      `--creator must be a decimal integer: it is ${quote(creator)}; ` +
        'curtail key list prints the creator ID of each key',
    )
  }
  const given = stringOf(values['target-host'])
  const host = given === undefined ? undefined : parseHost(given)
  const fault = given === undefined ? undefined : hostFaultOf(verb, given, host)
  if (fault !== undefined) throw new UsageError(`--target-host ${fault}: it is ${quote(given)}`)
  return { creator: creator === undefined ? undefined : String(BigInt(creator)), host, state }
}

/** Why the host (`undefined`: invalid) would not select the intended links. */
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
