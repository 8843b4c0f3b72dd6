// The grammar of rule files: parses YAML, or the resources of an xDS server, into the tree of
// rules, or reports all faults of all files. Does no I/O.
import { defaultAlgorithm, findAlgorithm } from './algorithms.ts'
import { decodeConfig, type RuleResource } from './decode-config.ts'
import type { LimitDefaults } from './parse-limit.ts'
import { rulesOf } from './descriptor-rules.ts'
import {
  type Fields,
  lineOf,
  type StringField,
  readFlag,
  readMaps,
  readString,
} from './parse-fields.ts'
import { parseBasicYaml } from './parse-basic-yaml.ts'
import { type YamlMap, parseYaml } from './parse-yaml.ts'
import { type AllDiagnostics, createDiagnostics, type Diagnostics } from './rule-fault.ts'
import { checkKeys } from './rule-keys.ts'
import type { RuleFault, RuleLevel, RuleNode, RuleSet } from './rule.ts'
import {
  addNode,
  emptyLevel,
  lengthPrefixed,
  noDescriptors,
  type MutableRuleLevel,
} from './rule-tree.ts'

/** Maximum depth of nested descriptors. */
export const DEPTH_MAX = 32
/** Maximum number of descriptors in all files, with aliases resolved. */
export const RULE_DESCRIPTORS_MAX = 100_000
/** Maximum length of a domain, a key or a value. */
export const STRING_LENGTH_MAX = 1024

/** A file to parse. */
export interface RuleFile {
  /** Its name in faults. */
  readonly name: string
  readonly text: string
}

/** The content of a rule file as a tree that is already parsed, but not yet checked. */
export interface RuleFileTree {
  readonly root: YamlMap
  /** Renders the path that faults show for a node; `line` is the number that identifies it. */
  readonly pathOf: (line: number) => string
}

/** Result of parsing. */
export type ParsedRuleFiles =
  | {
      readonly rules: RuleSet
      /** Warnings about valid rules that are probably a mistake. */
      readonly warnings: readonly RuleFault[]
    }
  | { readonly faults: readonly RuleFault[] }

/** State of parsing a set of files. */
interface Parsing {
  readonly rules: Map<string, MutableRuleLevel>
  readonly diagnostics: AllDiagnostics
  readonly mergeDomains: boolean
  readonly defaults: LimitDefaults
  descriptorsLeft: number
}

/** Options of parsing. */
export interface ParseOptions {
  /** Whether several files may define one domain. */
  readonly mergeDomains: boolean
  /** Default of `deny_consumes` for a fixed window. @default true */
  readonly denyConsumes?: boolean
  /** The algorithm of rules that set none, if it supports them. @default fixed window */
  readonly defaultAlgorithm?: string
}

/** Parses all files, resources or trees as one set. */
export function parseRules(
  files: readonly (RuleFile | RuleResource | RuleFileTree)[],
  options: ParseOptions,
): ParsedRuleFiles {
  const { mergeDomains, denyConsumes = true } = options
  const diagnostics = createDiagnostics()
  const algorithm = findAlgorithm(options.defaultAlgorithm ?? '') ?? defaultAlgorithm
  const defaults = { denyConsumes, algorithm }
  const settings = { mergeDomains, defaults, descriptorsLeft: RULE_DESCRIPTORS_MAX }
  const parsing: Parsing = { rules: new Map(), diagnostics, ...settings }
  for (const file of files) {
    if ('text' in file) loadFile(parsing, file)
    else if ('root' in file) loadRoot(parsing, file.root, diagnostics.of('', file.pathOf))
    else loadResource(parsing, file)
  }
  const faults = diagnostics.faults()
  return faults.length > 0 ? { faults } : { rules: parsing.rules, warnings: diagnostics.warnings() }
}

function loadFile(parsing: Parsing, { name, text }: RuleFile): void {
  const diagnostics = parsing.diagnostics.of(name)
  const root = parseBasicYaml(text) ?? parseYaml(text, diagnostics)
  if (root === undefined) return
  if (root.kind !== 'map' && root.kind !== 'null') {
    diagnostics.fault(root.line, 'error loading config file: a rules file must be a mapping')
    return
  }
  loadRoot(parsing, root.kind === 'map' ? root : { ...root, kind: 'map', entries: [] }, diagnostics)
}

function loadResource(parsing: Parsing, resource: RuleResource): void {
  const decoded = decodeConfig(resource, parsing.diagnostics, parsing.descriptorsLeft)
  if (decoded !== undefined) loadRoot(parsing, decoded.root, decoded.diagnostics)
}

function loadRoot(parsing: Parsing, map: YamlMap, diagnostics: Diagnostics): void {
  checkKeys(map, diagnostics)
  const fields: Fields = { map, diagnostics }
  const domain = readString(fields, 'domain')
  checkLength('domain', domain, diagnostics)
  const level = levelOf(parsing, domain, diagnostics)
  const identity = lengthPrefixed(domain.text)
  const context = { parsing, level, path: domain.text, identity, depth: 1 }
  for (const each of readMaps(fields, 'descriptors')) {
    loadDescriptor({ map: each, diagnostics }, context)
  }
}

/** The level for the descriptors of a file; if the domain is invalid, a level outside the set. */
function levelOf(
  { rules, mergeDomains }: Parsing,
  { text, line }: { text: string; line: number },
  diagnostics: Diagnostics,
): MutableRuleLevel {
  const level = emptyLevel()
  const existing = rules.get(text)
  if (text === '') diagnostics.fault(line, 'config file cannot have empty domain')
  else if (existing === undefined) rules.set(text, level)
  else if (mergeDomains) return existing
  else diagnostics.fault(line, `duplicate domain '${text}' in config file`)
  return level
}

/** The position of a descriptor in the set. */
interface DescriptorContext {
  readonly parsing: Parsing
  readonly level: MutableRuleLevel
  /** Path of its parent. */
  readonly path: string
  readonly identity: string
  readonly depth: number
}

function loadDescriptor(fields: Fields, context: DescriptorContext): void {
  if (!isWithinBounds(fields, context)) return
  const isHashed = readFlag(fields, 'hashed')
  const key = readKey(fields)
  const { value, isRejected } = readValue(fields, isHashed)
  const composite = value === '' ? key : `${key}_${value}`
  const path = `${context.path}.${composite}`
  const isShared = readShared(fields, composite, value)
  const components = [key, value, isShared ? 'shared' : '']
  const identity = context.identity + components.map(lengthPrefixed).join('')
  const node: RuleNode = {
    key,
    value,
    rules: rulesOf(fields, { path, identity, defaults: context.parsing.defaults }),
    path,
    isVariable: value === '' || (value.includes('*') && !isShared),
    isShared,
    hasValueMetric: readFlag(fields, 'value_to_metric'),
    children: loadChildren(fields, { ...context, path, identity }),
  }
  if (isRejected || key === '') return
  const added = addNode(context.level, node, { isHashed })
  if (added === 'duplicate') {
    fields.diagnostics.fault(fields.map.line, `duplicate descriptor composite key '${path}'`)
  } else if (added === 'mixed') {
    const message = `hashed must be equal in all descriptors of key '${key}' on one level`
    fields.diagnostics.fault(lineOf(fields, 'hashed'), message)
  }
}

function loadChildren(fields: Fields, parent: DescriptorContext): RuleLevel {
  const children = readMaps(fields, 'descriptors')
  if (children.length === 0) return noDescriptors
  const level = emptyLevel()
  const context = { ...parent, level, depth: parent.depth + 1 }
  for (const map of children) {
    loadDescriptor({ map, diagnostics: fields.diagnostics }, context)
  }
  return level
}

function isWithinBounds(
  { map, diagnostics }: Fields,
  { parsing, depth }: DescriptorContext,
): boolean {
  if (depth > DEPTH_MAX) {
    diagnostics.fault(map.line, `descriptors must be nested at most ${DEPTH_MAX} levels deep`)
    return false
  }
  parsing.descriptorsLeft -= 1
  if (parsing.descriptorsLeft === -1) {
    diagnostics.fault(
      map.line,
      `all files must have at most ${RULE_DESCRIPTORS_MAX} descriptors in total`,
    )
  }
  return parsing.descriptorsLeft >= 0
}

function checkLength(name: string, { text, line }: StringField, diagnostics: Diagnostics): void {
  if (text.length <= STRING_LENGTH_MAX) return
  const message = `${name} must have at most ${STRING_LENGTH_MAX} characters: it has ${text.length}`
  diagnostics.fault(line, message)
}

function readKey(fields: Fields): string {
  const key = readString(fields, 'key')
  const { text, line } = key
  checkLength('key', key, fields.diagnostics)
  if (text === '') fields.diagnostics.fault(line, 'descriptor has empty key')
  if (text.includes('*')) {
    fields.diagnostics.fault(line, `a key cannot contain '*', only a value can: it is '${text}'`)
  }
  return text
}

const hashedValue = /^sha256:[0-9a-f]{64}$/
/** Patterns that can match a hash; any other may contain characters of a secret. */
const hashedPattern = /^(\*|sha256:(\**[0-9a-f]){0,64}\**)$/

/** Reads a value. A plain value of a hashed key is a secret, so no message contains it. */
function readValue(fields: Fields, isHashed: boolean): { value: string; isRejected: boolean } {
  const field = readString(fields, 'value')
  const { text, line } = field
  checkLength('value', field, fields.diagnostics)
  const isPattern = text.includes('*') && hashedPattern.test(text)
  if (!isHashed || text === '' || hashedValue.test(text) || isPattern) {
    return { value: text, isRejected: false }
  }
  const allowed = 'absent, `sha256:<64 lowercase hex digits>`, `*`, or a pattern like `sha256:ab*`'
  const problem = `Cannot use this value for a hashed key: it must be ${allowed}`
  const message = `${problem}; the value is not shown`
  fields.diagnostics.fault(line, message)
  return { value: '', isRejected: true }
}

function readShared(fields: Fields, composite: string, value: string): boolean {
  if (!readFlag(fields, 'share_threshold')) return false
  if (value.includes('*')) return true
  const cause = "share_threshold can only be used with wildcard values (containing '*')"
  const message = `${cause}, but found key '${composite}'`
  fields.diagnostics.fault(lineOf(fields, 'share_threshold'), message)
  return false
}
