// `curtail ratelimit-check`: reports the faults of rule files, or, if there are none, the rules and
// which rule each descriptor matches. It uses no network.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { limitSettings } from '../limiter/settings/settings.ts'
import {
  type Allowances,
  ALLOWANCES_SYNTAX,
  explainAllowances,
  parseAllowances,
} from '../limits/describe-allowance.ts'
import type { Descriptor } from '../limits/descriptor.ts'
import { DESCRIPTOR_SYNTAX, parseDescriptor } from '../limits/parse-descriptor.ts'
import { FILE_BYTES_MAX } from '../limits/parse-yaml.ts'
import { requireDomain } from '../limits/require-domain.ts'
import { renderFault } from '../limits/rule-fault.ts'
import { type DescribedRules, describeRules, explainMatch } from '../limits/describe-rules.ts'
import type { RuleSet } from '../limits/rule.ts'
import { parseRules, type RuleFile } from '../limits/parse-rules.ts'
import { jsonFlag, type Parsed } from '../process/command-line.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'
import { redisSettings } from '../stores/redis/settings.ts'

const FILES_MAX = 1000
/** The name of the standard input in arguments. */
const STDIN = '-'
const BOUND = `may have at most ${FILE_BYTES_MAX} bytes`
/** The settings of the role ratelimit that change the meaning of rules, or the warnings. */
const settings = {
  DEFAULT_ALGORITHM: limitSettings.DEFAULT_ALGORITHM,
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: limitSettings.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT,
  REDIS_TYPE: redisSettings.REDIS_TYPE,
} as const
const commands = {
  '': {
    about: '',
    operands: ['FILE...'],
    flags: {
      descriptor: {
        about: 'prints the rule that this descriptor matches, and why',
        value: 'k=v,k=v',
        isMultiple: true,
      },
      domain: {
        about: 'domain of the descriptors; it may be omitted if the files have only one',
        value: 'DOMAIN',
      },
      'merge-domains': {
        about: 'allows several files to define one domain, like MERGE_DOMAIN_CONFIG',
      },
      allowance: {
        about: 'prints how much rules with a burst and these allowances of Envoys admit together',
        value: 'BUCKETS,BURST,PER_MINUTE',
      },
      ...jsonFlag,
    },
  },
} as const

/** `ratelimit-check FILES`. */
export const role = defineRole({
  name: 'ratelimit-check',
  about:
    'Checks rule files of the role ratelimit. Prints each fault as file:line: message. If there\n' +
    'are no faults, prints all rules, and for each descriptor the rule that it matches and why.\n' +
    'If a FILE is a folder, all its *.yaml files are checked; - is the standard input. The\n' +
    'domain of the descriptors must have rules. Set the settings below as for the role\n' +
    'ratelimit.\n' +
    'Exits with 0 if there are no faults, with 1 if there are, with 2 if an argument is invalid.',
  commands,
  settings,
  run: async ({ args, config }) => {
    const request = parseCheckArgs(args)
    const isJson = args.flags.json
    const files = await readFiles(request.paths)
    const { domain = '', mergeDomains, paths } = request
    const place = paths.join(', ')
    const denyConsumes = !config.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
    const defaultAlgorithm = config.DEFAULT_ALGORITHM
    const parsing = { mergeDomains, denyConsumes, defaultAlgorithm }
    const parsed = requireDomain(parseRules(files, parsing), { domain, place })
    if ('faults' in parsed) {
      const faults = parsed.faults.map(renderFault)
      process.stdout.write(
        isJson ? renderJsonLines([{ faults }]) : faults.map((fault) => `${fault}\n`).join(''),
      )
      return { exitCode: 1 }
    }
    const { rules, warnings } = parsed
    const result = {
      files: files.length,
      rules,
      described: describeRules(rules, { isRedisCluster: config.REDIS_TYPE === 'CLUSTER' }),
      warnings: warnings.map(renderFault),
      explained: explainAll(rules, request),
    }
    process.stdout.write(isJson ? renderJson(result) : renderResult(result))
    return { exitCode: 0 }
  },
})

/** The parsed arguments. */
interface CheckRequest {
  readonly paths: readonly string[]
  readonly descriptors: readonly { readonly source: string; readonly descriptor: Descriptor }[]
  readonly domain: string | undefined
  readonly mergeDomains: boolean
  readonly allowances: Allowances | undefined
}

function parseCheckArgs({ operands, flags }: Parsed<typeof commands>): CheckRequest {
  if (operands.filter((path) => path === STDIN).length > 1)
    throw new UsageError(`${STDIN} may be given only once: it is the standard input`)
  return {
    paths: operands,
    descriptors: flags.descriptor.map((source) => ({ source, descriptor: descriptorOf(source) })),
    domain: flags.domain,
    mergeDomains: flags['merge-domains'],
    allowances: flags.allowance === undefined ? undefined : allowancesOf(flags.allowance),
  }
}

function allowancesOf(source: string): Allowances {
  const allowances = parseAllowances(source)
  if (allowances !== undefined) return allowances
  throw new UsageError(`--allowance must be ${ALLOWANCES_SYNTAX}: it is ${JSON.stringify(source)}`)
}

function descriptorOf(source: string): Descriptor {
  const descriptor = parseDescriptor(source)
  if (descriptor !== undefined) return descriptor
  throw new UsageError(`--descriptor must be ${DESCRIPTOR_SYNTAX}: it is ${JSON.stringify(source)}`)
}

async function readFiles(paths: readonly string[]): Promise<readonly RuleFile[]> {
  const names: string[] = []
  for (const path of paths) names.push(...(await filesOf(path)))
  if (names.length > FILES_MAX) {
    throw new OperatorError(`at most ${FILES_MAX} files are allowed: there are ${names.length}`)
  }
  const files: RuleFile[] = []
  for (const name of names) {
    files.push(name === STDIN ? decode('stdin', await readStdin()) : await readSource(name))
  }
  return files
}

async function filesOf(path: string): Promise<readonly string[]> {
  if (path === STDIN) return [path]
  const status = await readOrThrow(path, () => stat(path))
  if (!status.isDirectory()) return [path]
  const names = await readOrThrow(path, () => readdir(path))
  const files = names.filter((name) => name.endsWith('.yaml')).sort()
  if (files.length === 0) throw new OperatorError(`${path} is a folder without any *.yaml file`)
  return files.map((name) => join(path, name))
}

async function readSource(path: string): Promise<RuleFile> {
  const status = await readOrThrow(path, () => stat(path))
  if (!status.isFile()) throw new OperatorError(`${path} cannot be read: it is not a file`)
  if (status.size > FILE_BYTES_MAX) {
    throw new OperatorError(`${path} ${BOUND}: it has ${status.size}`)
  }
  return decode(path, await readOrThrow(path, () => readFile(path)))
}

async function readStdin(): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > FILE_BYTES_MAX) throw new OperatorError(`the standard input ${BOUND}: it has more`)
  }
  return Buffer.concat(chunks)
}

function decode(name: string, bytes: Buffer): RuleFile {
  try {
    return { name, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    throw new OperatorError(`${name} cannot be read: it is not UTF-8`)
  }
}

/** Messages of system errors. */
const errnoMessages: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  ENOTDIR: 'a component of the path is not a folder',
}

async function readOrThrow<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new OperatorError(`${path} cannot be read: ${errnoMessages[code] ?? message}`)
  }
}

/** What is printed for rules without faults. */
interface CheckResult {
  readonly files: number
  readonly rules: RuleSet
  readonly described: DescribedRules
  readonly warnings: readonly string[]
  readonly explained: readonly Explained[]
}

/** Why a descriptor matches a rule. */
interface Explained {
  readonly domain: string
  readonly descriptor: string
  readonly explanation: readonly string[]
}

function renderResult(result: CheckResult): string {
  const { warnings, explained } = result
  return [
    renderRules(result),
    ...warnings.map((warning) => `warning: ${warning}\n`),
    ...explained.map(({ domain, descriptor, explanation }) =>
      [`\n${domain}: ${descriptor}\n`, ...explanation.map((line) => `  ${line}\n`)].join(''),
    ),
  ].join('')
}

const headings = ['RULE', 'ALGORITHM', 'LIMIT', 'WINDOW', 'BURST', 'NAME', 'NOTES']

/** One object; the members of a rule are the columns of the table, in lower case. */
function renderJson({ files, rules, described, warnings, explained }: CheckResult): string {
  const names = headings.map((heading) => heading.toLowerCase())
  const rows = described.rows.map((row) =>
    Object.fromEntries(names.map((name, column) => [name, row[column] ?? ''])),
  )
  const result = {
    files,
    domains: [...rules.keys()],
    rules: rows,
    warnings: [...described.warnings, ...warnings],
    descriptors: explained,
  }
  return renderJsonLines([result])
}

function renderRules({ files, rules, described }: CheckResult): string {
  const { rows, warnings } = described
  const domains = [...rules.keys()].join(', ')
  const counts = [renderCount(files, 'file'), renderCount(rows.length, 'rule')].join(', ')
  const summary = `no faults: ${counts}, ${renderCount(rules.size, 'domain')} (${domains})\n`
  const warningLines = warnings.map((warning) => `warning: ${warning}\n`)
  return [summary, renderTable(headings, rows), ...warningLines].join('')
}

/** Such as `1 file` or `2 files`. */
function renderCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function explainAll(rules: RuleSet, request: CheckRequest): readonly Explained[] {
  const { descriptors, domain, allowances } = request
  if (descriptors.length === 0) return []
  const descriptorDomain = domain ?? onlyDomain(rules)
  return descriptors.map(({ source, descriptor }) => {
    const shared = { rules, domain: descriptorDomain, descriptor }
    const sums = allowances === undefined ? [] : explainAllowances(shared, allowances)
    const explanation = [...explainMatch(shared), ...sums]
    return { domain: descriptorDomain, descriptor: source, explanation }
  })
}

function onlyDomain(rules: RuleSet): string {
  const [first, second] = [...rules.keys()]
  if (first !== undefined && second === undefined) return first
  const domains = [...rules.keys()].join(', ')
  throw new UsageError(`--domain must name the domain of the descriptors: ${domains}`)
}
