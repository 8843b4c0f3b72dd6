// The rules of the role `ratelimit`: loaded from the location in its settings, and reloaded when
// the files change.
import { fileSettings } from '../../config/config.ts'
import { requireDomain } from '../../limits/require-domain.ts'
import type { RuleSet } from '../../limits/rule.ts'
import { eachRule } from '../../limits/rule-tree.ts'
import { type ParsedRuleFiles, type ParseOptions, parseRules } from '../../limits/parse-rules.ts'
import type { Stop } from '../../process/stop.ts'
import type { Log } from '../../telemetry/log.ts'
import { FileTreeError, type ReadFile } from '../../process/file-tree.ts'
import { watchFiles } from '../../process/watch-files.ts'
import type { DenyCache } from '../decide/deny-cache.ts'
import { createThreadParser } from './parse-in-thread.ts'
import { ruleFilesOf } from './rule-files.ts'
import { type ActiveRules, openRuleSource, rejectionOf } from './rule-source.ts'
import type { RuleStats } from '../stats/rule-stats.ts'
import { openRulesCopy } from './rules-copy.ts'
import { limitSettings, type RuleFileConfig, ruleFileSettings } from '../settings/settings.ts'

/**
 * During startup, files with at most this many characters in total are parsed in the main thread.
 * Otherwise a worker thread parses them; its heap is bounded, and released when the thread exits.
 */
const START_LENGTH_MAX = 4 * 1024 * 1024

/** Loaded rules, which reloads replace. */
export interface LoadedRules extends ActiveRules {
  /**
   * Calls `onReloaded` after each reload, even a rejected one, until the returned function is
   * called. Rule files are reloaded only from this call on: when they change, and on SIGHUP.
   */
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

const { DEFAULT_ALGORITHM, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT } = limitSettings
const parseSettings = { DEFAULT_ALGORITHM, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT }

/** The check of the rule files, if the process cannot start without them. */
export const ruleFiles = fileSettings({ ...ruleFileSettings, ...parseSettings }, async (config) => {
  const isOptional = config.FORCE_START_WITHOUT_INITIAL_CONFIG || config.RULES_COPY !== ''
  if (config.CONFIG_TYPE !== 'FILE' || isOptional) return
  const { folder, read } = ruleFilesOf(config)
  const denyConsumes = !config.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
  const given = { config, denyConsumes, defaultAlgorithm: config.DEFAULT_ALGORITHM }
  const files = await read().catch((error: unknown) => {
    if (!(error instanceof FileTreeError)) throw error
    throw rejectionOf(folder, [{ file: error.file, line: 1, message: error.message }])
  })
  const parsed = await parseAtStart(files, parseOptionsOf(given))
  const checked = requireDomain(parsed, { domain: config.REQUIRED_DOMAIN, place: folder })
  if ('faults' in checked) throw rejectionOf(folder, checked.faults)
})

/** Parses files before the process serves calls. Throws an error if the thread fails. */
async function parseAtStart(
  files: readonly ReadFile[],
  options: ParseOptions,
  inThread = createThreadParser(options),
): Promise<ParsedRuleFiles> {
  const length = files.reduce((sum, { text }) => sum + text.length, 0)
  return length > START_LENGTH_MAX ? await inThread.parse(files) : parseRules(files, options)
}

/** Loads the rules. Throws ConfigError if they are invalid. */
export async function openRules(deps: RulesDeps): Promise<LoadedRules> {
  const { config, log } = deps
  const files = ruleFilesOf(config)
  const options = parseOptionsOf(deps)
  const inThread = createThreadParser(options)
  let isStarting = true // before the process serves calls
  const source = await openRuleSource({
    folder: files.folder,
    readFiles: files.read,
    parse: async (read) => {
      const parsing = isStarting ? parseAtStart(read, options, inThread) : inThread.parse(read)
      const { REQUIRED_DOMAIN: domain } = config
      return requireDomain(await parsing, { domain, place: files.folder })
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
        log.error({ err }, 'rule files not watched: polling continues')
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

/** The options of the parser; can be sent to a thread. */
export function parseOptionsOf({
  config,
  denyConsumes,
  defaultAlgorithm,
}: Pick<RulesDeps, 'config' | 'denyConsumes' | 'defaultAlgorithm'>): ParseOptions {
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
