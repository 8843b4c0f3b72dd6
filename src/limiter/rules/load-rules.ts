// The rules of the role `ratelimit`: loaded from the location in its settings, and reloaded when
// the files change.
import { requireDomain } from '../../limits/require-domain.ts'
import type { RuleSet } from '../../limits/rule.ts'
import { eachRule } from '../../limits/rule-tree.ts'
import { type ParseOptions, parseRules } from '../../limits/rules.ts'
import type { Stop } from '../../process/stop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ReadFile } from '../../process/file-tree.ts'
import { watchFiles } from '../../process/watch-files.ts'
import type { DenyCache } from '../decide/deny-cache.ts'
import { createThreadParser } from './parse-in-thread.ts'
import { ruleFilesOf } from './rule-files.ts'
import { type ActiveRules, openRuleSource } from './rule-source.ts'
import type { RuleStats } from '../stats/rule-stats.ts'
import { openRulesCopy } from './rules-copy.ts'
import type { RuleFileConfig } from '../settings/settings.ts'

/** During startup, files with at most this many characters are parsed without a thread. */
const START_LENGTH_MAX = 4 * 1024 * 1024

/** Loaded rules; `watch` starts the reloads. */
export interface LoadedRules extends ActiveRules {
  /** Reloads the rules when they change, and on SIGHUP, until the result is called. */
  watch(onReloaded: () => void): Stop
}

/** The settings and dependencies of loading rules. */
export interface RulesDeps {
  readonly config: RuleFileConfig
  /** Default of `deny_consumes` for fixed windows. */
  readonly denyConsumes: boolean
  /** DEFAULT_ALGORITHM. */
  readonly defaultAlgorithm: string
  readonly stats: RuleStats
  readonly denyCache: DenyCache | undefined
  readonly log: Log
}

/** Loads the rules. Throws OperatorError if they are invalid. */
export async function openRules(deps: RulesDeps): Promise<LoadedRules> {
  const { config, log } = deps
  const files = ruleFilesOf(config)
  const parsing = parseOptionsOf(deps)
  const inThread = createThreadParser(parsing)
  let isStarting = true // before the process serves calls
  // The heap of the thread is bounded, and is released when it exits.
  const usesThread = (read: readonly ReadFile[]) => !isStarting || sizeOf(read) > START_LENGTH_MAX
  const source = await openRuleSource({
    folder: files.folder,
    readFiles: files.read,
    parse: async (read) => {
      const parsed = usesThread(read) ? await inThread.parse(read) : parseRules(read, parsing)
      return requireDomain(parsed, { domain: config.REQUIRED_DOMAIN, place: files.folder })
    },
    ...(config.RULES_COPY !== '' && { copy: openRulesCopy(config.RULES_COPY, log) }),
    onLoaded: (rules) => {
      recordActivation(deps, rules)
    },
    onRejected: () => {
      deps.stats.service.configLoadError++
    },
    log,
    nowMs: Date.now,
    mayStartWithoutRules: config.FORCE_START_WITHOUT_INITIAL_CONFIG,
  })
  isStarting = false
  return {
    ...source,
    watch(onReloaded) {
      const onChange = async () => {
        await source.reload()
        onReloaded()
        return source.isRetryable() ? 'retry' : undefined
      }
      const onError = (err: unknown) => {
        log.error({ err }, 'cannot watch the rule files')
      }
      const watch = watchFiles({ scan: files.scan, onChange, onError })
      process.on('SIGHUP', watch.reload)
      return async () => {
        process.off('SIGHUP', watch.reload)
        await inThread.stop()
        await watch.stop()
      }
    },
  }
}

function sizeOf(files: readonly ReadFile[]): number {
  return files.reduce((sum, { text }) => sum + text.length, 0)
}

/** The options of parsing, also in a thread. */
export function parseOptionsOf({
  config,
  denyConsumes,
  defaultAlgorithm,
}: RulesDeps): ParseOptions {
  return { mergeDomains: config.MERGE_DOMAIN_CONFIG, denyConsumes, defaultAlgorithm }
}

/** Records that rules became active, and clears the cached denials of the previous ones. */
export function recordActivation({ stats, denyCache }: RulesDeps, rules: RuleSet): void {
  stats.service.configLoadSuccess++
  stats.declareRules(pathsOf(rules))
  denyCache?.clear()
}

/** Lazy, because the caller may use only a few of many paths. */
function* pathsOf(rules: RuleSet): Generator<string> {
  for (const { path } of eachRule(rules)) yield path
}
