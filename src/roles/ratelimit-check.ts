// `curtail ratelimit-check`: reports the faults of rule files, or, if there are none, the rules and
// which rule each descriptor matches. It uses no network.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
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
import { describeRules, explainMatch } from '../limits/describe-rules.ts'
import type { RuleSet } from '../limits/rule.ts'
import { parseRules, type RuleFile } from '../limits/rules.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'

const FILES_MAX = 1000
/** The settings of the role ratelimit that change the meaning of rules. */
const settings = {
  DEFAULT_ALGORITHM: limitSettings.DEFAULT_ALGORITHM,
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: limitSettings.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT,
} as const
const options = {
  allowance: { type: 'string' },
  descriptor: { type: 'string', multiple: true },
  domain: { type: 'string' },
  'merge-domains': { type: 'boolean' },
} as const

/** `ratelimit-check FILES`. */
export const role = defineRole({
  usage:
    'ratelimit-check FILES [--descriptor k=v,k=v]... [--domain D] [--merge-domains]\n' +
    '  [--allowance BUCKETS,BURST,PER_MINUTE]',
  about:
    'Checks rule files of the role ratelimit. Prints each fault as file:line: message. If there\n' +
    'are no faults, prints all rules, and for each descriptor the rule that it matches and why.\n' +
    'If FILES contains a folder, all its *.yaml files are checked.\n' +
    '--domain is the domain of the descriptors, and must have rules. It can be omitted if the\n' +
    'files have only one domain. --merge-domains allows several files to define one domain,\n' +
    'like MERGE_DOMAIN_CONFIG. --allowance adds to the token buckets of the descriptors what\n' +
    'Envoys admit without a call. Set the settings below as for the role ratelimit.\n' +
    'Exits with 0 if there are no faults, with 1 if there are, with 2 if an argument is invalid.',
  settings,
  run: async ({ args, config }) => {
    const request = parseCheckArgs(args)
    const files = await readFiles(request.paths)
    const { domain = '', mergeDomains, paths } = request
    const place = paths.join(', ')
    const denyConsumes = !config.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
    const defaultAlgorithm = config.DEFAULT_ALGORITHM
    const parsing = { mergeDomains, denyConsumes, defaultAlgorithm }
    const parsed = requireDomain(parseRules(files, parsing), { domain, place })
    if ('faults' in parsed) {
      process.stdout.write(parsed.faults.map((fault) => `${renderFault(fault)}\n`).join(''))
      return { exitCode: 1 }
    }
    const { rules, warnings } = parsed
    const warningLines = warnings.map((warning) => `warning: ${renderFault(warning)}\n`)
    const explained = explainAll(rules, request)
    process.stdout.write([renderRules(rules, files.length), ...warningLines, ...explained].join(''))
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

function parseCheckArgs(args: readonly string[]): CheckRequest {
  const { values, positionals } = splitArgs(args)
  if (positionals.length === 0) {
    throw new UsageError('ratelimit-check requires one or more FILES or folders')
  }
  return {
    paths: positionals,
    descriptors: (values.descriptor ?? []).map((source) => ({
      source,
      descriptor: descriptorOf(source),
    })),
    domain: values.domain,
    mergeDomains: values['merge-domains'] ?? false,
    allowances: values.allowance === undefined ? undefined : allowancesOf(values.allowance),
  }
}

function splitArgs(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split(/\. |\n/)
    throw new UsageError(
      `ratelimit-check takes --descriptor, --domain, --merge-domains and --allowance: ${sentence}`,
    )
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
  for (const name of names) files.push({ name, text: await readSource(name) })
  return files
}

async function filesOf(path: string): Promise<readonly string[]> {
  const status = await readOrThrow(path, () => stat(path))
  if (!status.isDirectory()) return [path]
  const names = await readOrThrow(path, () => readdir(path))
  const files = names.filter((name) => name.endsWith('.yaml')).sort()
  if (files.length === 0) throw new OperatorError(`${path} is a folder without any *.yaml file`)
  return files.map((name) => join(path, name))
}

async function readSource(path: string): Promise<string> {
  const status = await readOrThrow(path, () => stat(path))
  if (!status.isFile()) throw new OperatorError(`${path} cannot be read: it is not a file`)
  if (status.size > FILE_BYTES_MAX) {
    const bound = `may have at most ${FILE_BYTES_MAX} bytes`
    throw new OperatorError(`${path} ${bound}: it has ${status.size}`)
  }
  const bytes = await readOrThrow(path, () => readFile(path))
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new OperatorError(`${path} cannot be read: it is not UTF-8`)
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

function renderRules(rules: RuleSet, files: number): string {
  const { rows, warnings } = describeRules(rules)
  const domains = [...rules.keys()].join(', ')
  const counts = [renderCount(files, 'file'), renderCount(rows.length, 'rule')].join(', ')
  const summary = `no faults: ${counts}, ${renderCount(rules.size, 'domain')} (${domains})\n`
  const headings = ['RULE', 'ALGORITHM', 'LIMIT', 'WINDOW', 'BURST', 'NAME', 'NOTES']
  const warningLines = warnings.map((warning) => `warning: ${warning}\n`)
  return [summary, renderTable(headings, rows), ...warningLines].join('')
}

/** Such as `1 file` or `2 files`. */
function renderCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function explainAll(rules: RuleSet, request: CheckRequest): readonly string[] {
  const { descriptors, domain, allowances } = request
  if (descriptors.length === 0) return []
  const descriptorDomain = domain ?? onlyDomain(rules)
  return descriptors.map(({ source, descriptor }) => {
    const shared = { rules, domain: descriptorDomain, descriptor }
    const sums = allowances === undefined ? [] : explainAllowances(shared, allowances)
    const lines = [...explainMatch(shared), ...sums]
    return [`\n${descriptorDomain}: ${source}\n`, ...lines.map((line) => `  ${line}\n`)].join('')
  })
}

function onlyDomain(rules: RuleSet): string {
  const [first, second] = [...rules.keys()]
  if (first !== undefined && second === undefined) return first
  const domains = [...rules.keys()].join(', ')
  throw new UsageError(`--domain must name the domain of the descriptors: ${domains}`)
}
