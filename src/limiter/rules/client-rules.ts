// The rules file of a process that limits its own clients: the file is accepted as a whole, or
// rejected with all its faults.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseRules } from '../../limits/parse-rules.ts'
import type { RuleFault, RuleSet } from '../../limits/rule.ts'
import { renderFault } from '../../limits/rule-fault.ts'
import { ConfigError, fileSettings, type Setting } from '../../config/config.ts'
import { stringSetting } from '../../config/settings.ts'
import { CLIENT_DOMAIN, findUnusedRules } from '../decide/client-limits.ts'

const SHIPPED = 'shipped'
const shippedRules = fileURLToPath(new URL('../../limits/standalone.yaml', import.meta.url))

/** RATE_LIMITS: `shipped`, `off`, or the path of a file. */
export const rateLimitsSetting: Setting<string> = {
  ...stringSetting('rate limits of clients', SHIPPED),
  allowed: 'the path of a rules file, or off',
  fallback: 'the shipped rules',
}

/** The check of the rules file. */
export const rateLimitsFile = fileSettings(
  { RATE_LIMITS: rateLimitsSetting },
  ({ RATE_LIMITS: setting }) => readClientRules(setting),
)

/** The rules of a process, and warnings about probable mistakes in them. */
export interface ClientRules {
  readonly rules: RuleSet | 'off'
  readonly warnings: readonly RuleFault[]
}

/** Reads the rules that RATE_LIMITS selects, or returns `off`. Throws ConfigError. */
export function readClientRules(setting: string): ClientRules {
  if (setting === 'off') return { rules: 'off', warnings: [] }
  const name = setting === SHIPPED ? shippedRules : setting
  const parsed = parseRules([{ name, text: readRules(name) }], { mergeDomains: false })
  if ('faults' in parsed) {
    throw new ConfigError(parsed.faults.map((fault) => `RATE_LIMITS: ${renderFault(fault)}`))
  }
  const { rules, warnings } = parsed
  if (rules.has(CLIENT_DOMAIN)) return { rules, warnings: [...warnings, ...unusedIn(rules, name)] }
  throw new ConfigError([`RATE_LIMITS: ${name} must have the domain ${CLIENT_DOMAIN}`])
}

function unusedIn(rules: RuleSet, name: string): RuleFault[] {
  const message =
    'no request matches this rule: requests have route=create, report, redirect or unknown with ' +
    'client under it, and creates with an API key also api_key'
  const paths = new Set(findUnusedRules(rules).map(({ path }) => path))
  return [...paths].map((path) => ({ file: name, line: 1, path, message }))
}

function readRules(name: string): string {
  try {
    return readFileSync(name, 'utf8')
  } catch {
    throw new ConfigError([`RATE_LIMITS must name a readable file, or be off: it is ${name}`])
  }
}
