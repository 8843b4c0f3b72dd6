// The grammar of rule files: YAML in, rules in the tree by which they are found out, or every fault
// of every file at once. Reads no file itself.
import { rulesOf } from './rule-limits.ts'
import {
  type Fields,
  lineOf,
  type LocatedText,
  readFlag,
  readMaps,
  readText,
} from './parse-fields.ts'
import { type LocatedMap, parseYaml } from './parse-yaml.ts'
import { type AllDiagnostics, createDiagnostics, type Diagnostics } from './rule-fault.ts'
import { checkKeys } from './rule-keys.ts'
import type { RuleFault, RuleNode, RuleSet } from './rule.ts'
import { addNode, emptyLevel, lengthPrefixed, type OpenLevel } from './rule-tree.ts'

/** Descriptors within descriptors. */
export const DEPTH_MAX = 32
/** Descriptors of all files together, aliases followed. */
export const DESCRIPTORS_MAX = 100_000
/** Characters of a domain, a key or a value. */
export const TEXT_LENGTH_MAX = 1024

/** A file to be parsed. */
export interface RuleFile {
  /** As its faults name it. */
  readonly name: string
  readonly text: string
}

/** What came of parsing. */
export type ParsedRuleFiles =
  | {
      readonly rules: RuleSet
      /** What the reference loads too, but hardly means what its writer meant. */
      readonly remarks: readonly RuleFault[]
    }
  | { readonly faults: readonly RuleFault[] }

/** What parsing a set of files carries along. */
interface Parsing {
  readonly rules: Map<string, OpenLevel>
  readonly diagnostics: AllDiagnostics
  readonly mergeDomains: boolean
  readonly denyConsumes: boolean
  descriptorsLeft: number
}

/** How files are parsed. */
export interface ParseOptions {
  /** Whether several files may hold parts of one domain. */
  readonly mergeDomains: boolean
  /** What `deny_consumes` means where a fixed window does not say it; true if it is left out. */
  readonly denyConsumes?: boolean
}

/** Parses all files as one set. */
export function parseRules(files: readonly RuleFile[], options: ParseOptions): ParsedRuleFiles {
  const { mergeDomains, denyConsumes = true } = options
  const diagnostics = createDiagnostics()
  const bounds = { mergeDomains, denyConsumes, descriptorsLeft: DESCRIPTORS_MAX }
  const parsing: Parsing = { rules: new Map(), diagnostics, ...bounds }
  for (const file of files) loadFile(parsing, file)
  const faults = diagnostics.faults()
  return faults.length > 0 ? { faults } : { rules: parsing.rules, remarks: diagnostics.remarks() }
}

function loadFile(parsing: Parsing, { name, text }: RuleFile): void {
  const diagnostics = parsing.diagnostics.of(name)
  const root = parseYaml(text, diagnostics)
  if (root === undefined) return
  if (root.kind !== 'map' && root.kind !== 'null') {
    diagnostics.fault(root.line, 'error loading config file: a rules file must be a mapping')
    return
  }
  const map: LocatedMap = root.kind === 'map' ? root : { ...root, kind: 'map', entries: [] }
  checkKeys(map, diagnostics)
  const fields: Fields = { map, diagnostics }
  const domain = readText(fields, 'domain')
  checkLength('domain', domain, diagnostics)
  const level = levelOf(parsing, domain, diagnostics)
  const identity = lengthPrefixed(domain.text)
  const at = { parsing, level, path: domain.text, identity, depth: 1 }
  for (const each of readMaps(fields, 'descriptors')) loadDescriptor({ map: each, diagnostics }, at)
}

/** Where the descriptors of a file go; a file that is refused is still looked through. */
function levelOf(
  { rules, mergeDomains }: Parsing,
  { text, line }: { text: string; line: number },
  diagnostics: Diagnostics,
): OpenLevel {
  const level = emptyLevel()
  const known = rules.get(text)
  if (text === '') diagnostics.fault(line, 'config file cannot have empty domain')
  else if (known === undefined) rules.set(text, level)
  else if (mergeDomains) return known
  else diagnostics.fault(line, `duplicate domain '${text}' in config file`)
  return level
}

/** Where a descriptor stands. */
interface At {
  readonly parsing: Parsing
  readonly level: OpenLevel
  /** Of what it stands in. */
  readonly path: string
  readonly identity: string
  readonly depth: number
}

function loadDescriptor(fields: Fields, at: At): void {
  if (!isWithinBounds(fields, at)) return
  const isHashed = readFlag(fields, 'hashed')
  const key = readKey(fields)
  const { value, isRefused } = readValue(fields, isHashed)
  const composite = value === '' ? key : `${key}_${value}`
  const path = `${at.path}.${composite}`
  const isShared = readShared(fields, composite, value)
  const parts = [key, value, isShared ? 'shared' : '']
  const identity = at.identity + parts.map(lengthPrefixed).join('')
  const node: RuleNode = {
    key,
    value,
    rules: rulesOf(fields, { path, identity, denyConsumes: at.parsing.denyConsumes }),
    path,
    isVariable: value === '' || (value.includes('*') && !isShared),
    isShared,
    hasValueMetric: readFlag(fields, 'value_to_metric'),
    below: loadBelow(fields, { ...at, path, identity }),
  }
  if (isRefused || key === '') return
  const added = addNode(at.level, node, { isHashed })
  if (added === 'duplicate') {
    fields.diagnostics.fault(fields.map.line, `duplicate descriptor composite key '${path}'`)
  } else if (added === 'mixed') {
    const message = `hashed must be the same in all descriptors of key '${key}' beside each other`
    fields.diagnostics.fault(lineOf(fields, 'hashed'), message)
  }
}

function loadBelow(fields: Fields, above: At): OpenLevel {
  const level = emptyLevel()
  const at = { ...above, level, depth: above.depth + 1 }
  for (const map of readMaps(fields, 'descriptors')) {
    loadDescriptor({ map, diagnostics: fields.diagnostics }, at)
  }
  return level
}

function isWithinBounds({ map, diagnostics }: Fields, { parsing, depth }: At): boolean {
  if (depth > DEPTH_MAX) {
    diagnostics.fault(map.line, `descriptors may be nested ${DEPTH_MAX} deep`)
    return false
  }
  parsing.descriptorsLeft -= 1
  if (parsing.descriptorsLeft === -1) {
    diagnostics.fault(map.line, `all files together may have ${DESCRIPTORS_MAX} descriptors`)
  }
  return parsing.descriptorsLeft >= 0
}

function checkLength(name: string, { text, line }: LocatedText, diagnostics: Diagnostics): void {
  if (text.length <= TEXT_LENGTH_MAX) return
  const message = `${name} may have ${TEXT_LENGTH_MAX} characters: it has ${text.length}`
  diagnostics.fault(line, message)
}

function readKey(fields: Fields): string {
  const key = readText(fields, 'key')
  const { text, line } = key
  checkLength('key', key, fields.diagnostics)
  if (text === '') fields.diagnostics.fault(line, 'descriptor has empty key')
  if (text.includes('*')) {
    fields.diagnostics.fault(line, `a key cannot contain '*', only a value can: it is '${text}'`)
  }
  return text
}

const hashedForm = /^sha256:[0-9a-f]{64}$/
const hashedPattern = /^(\*|sha256:.*\*)/

/** A value. One that should be hashed and is not is a secret: it is never shown. */
function readValue(fields: Fields, isHashed: boolean): { value: string; isRefused: boolean } {
  const located = readText(fields, 'value')
  const { text, line } = located
  checkLength('value', located, fields.diagnostics)
  if (!isHashed || text === '' || hashedForm.test(text) || hashedPattern.test(text)) {
    return { value: text, isRefused: false }
  }
  const allowed = "absent, sha256: and 64 hexadecimal digits in lower case, or '*'"
  const message = `value must be ${allowed}, since the key is hashed: what it is is not shown`
  fields.diagnostics.fault(line, message)
  return { value: '', isRefused: true }
}

function readShared(fields: Fields, composite: string, value: string): boolean {
  if (!readFlag(fields, 'share_threshold')) return false
  if (value.includes('*')) return true
  const where = "share_threshold can only be used with wildcard values (containing '*')"
  const message = `${where}, but found key '${composite}'`
  fields.diagnostics.fault(lineOf(fields, 'share_threshold'), message)
  return false
}
