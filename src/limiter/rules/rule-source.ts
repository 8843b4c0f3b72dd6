// Holds the active rules: a new set of files replaces them as a whole if all files are valid, else
// it is rejected. Independent of the location of the files and of the parser.
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { RuleFault, RuleSet } from '../../limits/rule.ts'
import { countFaults, faultFields, FAULTS_LOGGED_MAX } from '../../limits/rule-fault.ts'
import { lengthPrefixed } from '../../limits/rule-tree.ts'
import type { ParsedRuleFiles } from '../../limits/parse-rules.ts'
import { createBoundedAccess } from '../../process/bounded-access.ts'
import { FileTreeError, type ReadFile } from '../../process/file-tree.ts'
import type { Log } from '../../telemetry/log.ts'
import { ConfigError } from '../../config/config.ts'
import { rejectionMessage } from './render-rejection.ts'
import { boundCopy, type RulesCopy } from './rules-copy.ts'

/** A temporary error of the parser: a later attempt with the same files may succeed. */
export class TransientParseError extends Error {
  override readonly name = 'TransientParseError'
}

/** The result of a reload. */
type ReloadResult = 'loaded' | 'rejected' | 'unchanged'

/** The state of the rules, for /rlconfig and health. */
interface RuleState {
  /** Whether a valid set has been loaded since the start. */
  readonly isLoaded: boolean
  /** Number of domains in the active set, including domains without rules. */
  readonly domains: number
  /** Time at which the active rules were loaded, in milliseconds since the Unix epoch. */
  readonly loadedAtMs: number | undefined
  /** Faults in the current files or version; empty if their rules are active. */
  readonly faults: readonly RuleFault[]
}

/** The active rules. */
export interface ActiveRules {
  /** The active rules; the same object until a reload replaces them. */
  rules(): RuleSet
  /** The state of the rules. */
  state(): RuleState
}

/** The active rules of files. */
export interface RuleSource extends ActiveRules {
  /** Reloads all files, after a change or SIGHUP. Never throws; called once at a time. */
  reload(): Promise<ReloadResult>
  /** Whether the last reload could not read the files or start the parser, so it can be retried. */
  isRetryable(): boolean
}

/** Dependencies of a rule source. */
export interface RuleSourceDeps {
  /** The folder of the files, for messages and log fields. */
  readonly folder: string
  /** Reads all files. Throws FileTreeError. */
  readonly readFiles: () => Promise<readonly ReadFile[]>
  /** An error that it throws counts as a fault; a TransientParseError is retryable. */
  readonly parse: (files: readonly ReadFile[]) => ParsedRuleFiles | Promise<ParsedRuleFiles>
  /** Called with rules when they become active, even during startup. */
  readonly onLoaded: (rules: RuleSet) => void
  /** Called with the faults of a rejected set, once per change of the files. */
  readonly onRejected: (faults: readonly RuleFault[]) => void
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  readonly nowMs: () => number
  /** FORCE_START_WITHOUT_INITIAL_CONFIG: an invalid first set does not abort startup. */
  readonly mayStartWithoutRules: boolean
  /** The copy of the last valid set, for restarts; absent: no copy is kept. */
  readonly copy?: RulesCopy
}

const READ_MS_MAX = 10_000

/** Loads the rules for the first time. Throws ConfigError with one line per fault. */
export async function openRuleSource(deps: RuleSourceDeps): Promise<RuleSource> {
  const { folder, onRejected, log, mayStartWithoutRules } = deps
  const copy = deps.copy && boundCopy(deps.copy, log)
  let rules: RuleSet = new Map()
  let loadedAtMs: number | undefined
  let faults: readonly RuleFault[] = []
  const activate = (loaded: RuleSet) => {
    rules = loaded
    loadedAtMs = deps.nowMs()
    deps.onLoaded(rules)
  }
  const { readChange, isRetryable } = changeReader(deps)
  const load = async (): Promise<ReloadResult> => {
    const change = await readChange()
    if (change === undefined) return 'unchanged'
    const { parsed, files } = change
    if ('faults' in parsed) {
      faults = parsed.faults
      onRejected(faults)
      return 'rejected'
    }
    faults = []
    activate(parsed.rules)
    await copy?.write(files)
    log.info({ folder, domains: rules.size }, 'rules loaded')
    const { warnings } = parsed
    if (warnings.length > 0)
      log.warn({ folder, ...faultFields(warnings) }, 'rules loaded with warnings')
    return 'loaded'
  }
  const logRejected = () => {
    const message = rejectionMessage(loadedAtMs !== undefined)
    log.error({ folder, ...faultFields(faults) }, message)
  }
  /** Activates the set in the copy; returns false if no valid copy exists. */
  const restore = async (): Promise<boolean> => {
    const files = await copy?.read()
    const parsed = files && (await parseCopy(deps, files))
    if (parsed === undefined) return false
    activate(parsed.rules)
    const message = 'last valid rules loaded: the rule files cannot be used'
    log.warn({ folder, domains: rules.size }, message)
    return true
  }
  if ((await load()) === 'rejected') {
    if (!(await restore()) && !mayStartWithoutRules) {
      throw rejectionOf(folder, faults)
    }
    logRejected()
  }
  return {
    rules: () => rules,
    isRetryable,
    state: () => {
      const isLoaded = loadedAtMs !== undefined
      return { isLoaded, domains: rules.size, loadedAtMs, faults }
    },
    async reload() {
      const result = await load()
      if (result === 'rejected') logRejected()
      return result
    },
  }
}

/** Parses a copy; logs its faults, or the error of the parser, and returns `undefined`. */
async function parseCopy({ folder, parse, log }: RuleSourceDeps, files: readonly ReadFile[]) {
  try {
    const parsed = await parse(files)
    if (!('faults' in parsed)) return parsed
    log.warn({ folder, ...faultFields(parsed.faults) }, 'the copy of the rules has faults')
  } catch (err) {
    log.warn({ folder, err }, 'cannot parse the copy of the rules')
  }
  return undefined
}

/** `readChange` reads the files and, if they have changed, parses them. */
function changeReader({ folder, readFiles, parse }: RuleSourceDeps) {
  const access = createBoundedAccess(READ_MS_MAX)
  const timeout = () =>
    new FileTreeError(folder, `reading the files took longer than ${READ_MS_MAX} ms`)
  let lastDigest: string | undefined
  let isRetryable = false
  const readChange = async () => {
    isRetryable = false
    try {
      const files = await access(readFiles, timeout)
      const digest = await digestOf(files)
      const parsed = digest === lastDigest ? undefined : await parse(files)
      lastDigest = digest
      return parsed && { parsed, files }
    } catch (error) {
      const isUnreadable = error instanceof FileTreeError
      isRetryable = isUnreadable || error instanceof TransientParseError
      // An error is a fault of the set, and is reported once.
      const file = isUnreadable ? error.file : folder
      const { message } = error as Error
      const digest = `${file}: ${message}`
      if (digest === lastDigest) return undefined
      lastDigest = digest
      return { parsed: { faults: [{ file, line: 1, message }] }, files: [] }
    }
  }
  return { readChange, isRetryable: () => isRetryable }
}

/** The digest of all files; the event loop runs between two files. */
async function digestOf(files: readonly ReadFile[]): Promise<string> {
  const hash = createHash('sha256')
  for (const [at, { name, text }] of files.entries()) {
    if (at > 0) await setImmediate()
    hash.update(lengthPrefixed(name)).update(lengthPrefixed(text))
  }
  return hash.digest('hex')
}

/** The error for the faults of a set. Names RUNTIME_ROOT, which usually selects the folder. */
export function rejectionOf(folder: string, faults: readonly RuleFault[]): ConfigError {
  const more = countFaults(faults) - FAULTS_LOGGED_MAX
  return new ConfigError([
    `RUNTIME_ROOT: Cannot load the rules in ${folder}:`,
    ...faultFields(faults).faults,
    ...(more > 0 ? [`and ${more} more`] : []),
  ])
}
