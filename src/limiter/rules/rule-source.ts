// Keeps the rules in force: a new set of files replaces them as a whole if all of it is right, and
// changes nothing otherwise. Where the files lie, and how they are parsed, others say.
import { createHash } from 'node:crypto'
import type { RuleFault, RuleSet } from '../../limits/rule.ts'
import { lengthPrefixed } from '../../limits/rule-tree.ts'
import { within } from '../../resilience/deadline.ts'
import { FileTreeError, type ReadFile } from '../../process/file-tree.ts'
import type { Log } from '../../telemetry/log.ts'
import { OperatorError } from '../../process/role.ts'
import type { RulesCopy } from './rules-copy.ts'

/** What a parser says of the files. */
export type ParsedRules =
  | {
      readonly rules: RuleSet
      /** What is right, but hardly means what its writer meant. */
      readonly remarks?: readonly RuleFault[]
    }
  | { readonly faults: readonly RuleFault[] }

/** What came of a reload. */
type Reloaded = 'loaded' | 'refused' | 'unchanged'

/** How the rules stand, for /rlconfig and health. */
interface RuleState {
  /** Whether any set has ever been good. */
  readonly isLoaded: boolean
  /** Domains that have rules now. */
  readonly domains: number
  /** When the rules in force were loaded, in milliseconds since the epoch. */
  readonly loadedAtMs: number | undefined
  /** What is wrong in the files as they are now; empty if they are in force. */
  readonly faults: readonly RuleFault[]
}

/** The rules in force. */
export interface RuleSource {
  /** The rules in force; the same object until a reload replaces it. */
  rules(): RuleSet
  /** How the rules stand. */
  state(): RuleState
  /** Reads all again: after a change, at SIGHUP. Never throws; calls that overlap share a run. */
  reload(): Promise<Reloaded>
}

/** What it takes to keep rules. */
export interface RuleSourceDeps {
  /** Where the files lie, for people. */
  readonly folder: string
  /** Reads all files. Throws FileTreeError. */
  readonly readFiles: () => Promise<readonly ReadFile[]>
  /** What an Error of it says is a fault; the files are parsed at the next reload then. */
  readonly parse: (files: readonly ReadFile[]) => ParsedRules | Promise<ParsedRules>
  /** Told of rules once they are in force, those of the start included. */
  readonly onLoaded: (rules: RuleSet) => void
  /** Told of a set that is refused, once for each change. */
  readonly onRefused: (faults: readonly RuleFault[]) => void
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  readonly nowMs: () => number
  /** FORCE_START_WITHOUT_INITIAL_CONFIG: a bad first set does not end the start. */
  readonly mayStartWithout: boolean
  /** Where the last good set is kept over restarts; absent: nowhere. */
  readonly copy?: RulesCopy
}

const READ_MS_MAX = 10_000
/** More faults than these are counted, not shown. */
const FAULTS_SHOWN_MAX = 50

/** Loads the rules for the first time. Throws OperatorError, a line for each fault. */
export async function openRuleSource(deps: RuleSourceDeps): Promise<RuleSource> {
  const { folder, onRefused, log, mayStartWithout, copy } = deps
  let rules: RuleSet = new Map()
  let loadedAtMs: number | undefined
  let faults: readonly RuleFault[] = []
  let seen: string | undefined
  const use = (loaded: RuleSet) => {
    rules = loaded
    loadedAtMs = deps.nowMs()
    deps.onLoaded(rules)
  }
  const load = async (): Promise<Reloaded> => {
    const { parsed, digest, files } = await readRules(deps)
    if (digest === seen) return 'unchanged'
    seen = digest
    if ('faults' in parsed) {
      faults = parsed.faults
      onRefused(faults)
      return 'refused'
    }
    faults = []
    use(parsed.rules)
    if (copy !== undefined) await orLate(copy.write(files), 'writing the copy of the rules')
    log.info({ folder, domains: rules.size }, 'rules loaded')
    const { remarks = [] } = parsed
    if (remarks.length > 0) log.warn({ folder, ...shown(remarks) }, 'rules with remarks')
    return 'loaded'
  }
  /** The disk may hang: the rules do not wait for their copy. */
  const orLate = <T>(copied: Promise<T>, what: string): Promise<T | undefined> => {
    const late = () => new Error(`${what} took longer than ${READ_MS_MAX} ms`)
    return within<T | undefined>(READ_MS_MAX, copied, late).catch((err: unknown) => {
      log.warn({ err, folder }, 'rules continue without their copy')
      return undefined
    })
  }
  const logRefusal = () => {
    log.error({ folder, ...shown(faults) }, 'rules refused: what was in force stays')
  }
  /** Uses the last good set; whether there is one. */
  const restore = async (): Promise<boolean> => {
    const files = copy && (await orLate(copy.read(), 'reading the copy of the rules'))
    const parsed = files && (await deps.parse(files))
    if (parsed === undefined || 'faults' in parsed) return false
    use(parsed.rules)
    log.warn({ folder, domains: rules.size }, 'last good rules loaded: the files have faults')
    return true
  }
  if ((await load()) === 'refused') {
    if (!(await restore()) && !mayStartWithout) {
      throw new OperatorError(refusalOf(folder, faults))
    }
    logRefusal()
  }
  return {
    rules: () => rules,
    state: () => {
      const isLoaded = loadedAtMs !== undefined
      return { isLoaded, domains: rules.size, loadedAtMs, faults }
    },
    reload: sharedRuns(async () => {
      const reloaded = await load()
      if (reloaded === 'refused') logRefusal()
      return reloaded
    }),
  }
}

/** What the files say, and a text that is the same while they say the same. Never throws. */
async function readRules(deps: RuleSourceDeps): Promise<{
  parsed: ParsedRules
  digest: string
  files: readonly ReadFile[]
}> {
  const { folder, readFiles, parse } = deps
  const late = () => new FileTreeError(folder, 'reading the files took too long')
  try {
    const files = await within(READ_MS_MAX, readFiles(), late)
    return { parsed: await parse(files), digest: digestOf(files), files }
  } catch (error) {
    const file = error instanceof FileTreeError ? error.file : folder
    const { message } = error as Error
    const parsed = { faults: [{ file, line: 1, message }] }
    return { parsed, digest: `${file}: ${message}`, files: [] }
  }
}

function digestOf(files: readonly ReadFile[]): string {
  const hash = createHash('sha256')
  for (const { name, text } of files) hash.update(lengthPrefixed(name)).update(lengthPrefixed(text))
  return hash.digest('hex')
}

/** Calls that come while a run is under way share the next one, which begins after they came. */
function sharedRuns<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve()
  let next: Promise<T> | undefined
  return () => {
    next ??= running.then(() => {
      next = undefined
      const now = run()
      running = now.catch(() => undefined) // whoever asked is told; the next run goes on
      return now
    })
    return next
  }
}

function shown(faults: readonly RuleFault[]) {
  return { faultCount: faults.length, faults: faults.slice(0, FAULTS_SHOWN_MAX).map(lineOf) }
}

function refusalOf(folder: string, faults: readonly RuleFault[]): string {
  const more = faults.length - FAULTS_SHOWN_MAX
  return [
    `the rules in ${folder} cannot be used:`,
    ...shown(faults).faults,
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join('\n')
}

function lineOf({ file, line, message }: RuleFault): string {
  return `${file}:${line}: ${message}`
}
