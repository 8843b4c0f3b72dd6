// The rules of the role `ratelimit`: opened from where its settings say, and followed as they
// change.
import { requireDomain } from '../../limits/require-domain.ts'
import type { RuleSet } from '../../limits/rule.ts'
import { eachRule } from '../../limits/rule-tree.ts'
import { parseRules } from '../../limits/rules.ts'
import type { Log } from '../../telemetry/log.ts'
import { watchFiles } from '../../process/watch-files.ts'
import type { DenyCache } from '../decide/deny-cache.ts'
import { createThreadParser } from './parse-in-thread.ts'
import { ruleFilesOf, type RulePlace } from './rule-files.ts'
import { openRuleSource, type RuleSource } from './rule-source.ts'
import type { RuleStats } from '../stats/rule-stats.ts'
import { openRulesCopy } from './rules-copy.ts'
import type { RuleFileConfig } from '../settings/settings.ts'

/** Rules whose files are parsed beside the decisions, but for the first ones. */
interface FollowedRules extends RuleSource {
  /** Aborts the parsing that is under way. */
  stopParsing(): Promise<void>
}

/** Opens the rules, all of them right. Throws OperatorError. */
export async function openRules(deps: {
  readonly config: RuleFileConfig
  /** What `deny_consumes` is where a fixed window does not say it. */
  readonly denyConsumes: boolean
  readonly stats: RuleStats
  readonly denied: DenyCache | undefined
  readonly log: Log
}): Promise<FollowedRules> {
  const { config, denyConsumes, stats, denied, log } = deps
  const files = ruleFilesOf(placeOf(config))
  const domain = config.REQUIRED_DOMAIN
  const parsing = { mergeDomains: config.MERGE_DOMAIN_CONFIG, denyConsumes }
  const inThread = createThreadParser(parsing)
  let isStarting = true // before anything is served
  const source = await openRuleSource({
    folder: files.folder,
    readFiles: () => files.read(),
    parse: async (texts) => {
      const parsed = isStarting ? parseRules(texts, parsing) : await inThread.parse(texts)
      return requireDomain(parsed, { domain, place: files.folder })
    },
    ...(config.RULES_COPY !== '' && { copy: openRulesCopy(config.RULES_COPY, log) }),
    onLoaded: (rules) => {
      stats.service.configLoadSuccess++
      stats.declareRules(pathsOf(rules))
      denied?.clear()
    },
    onRefused: () => {
      stats.service.configLoadError++
    },
    log,
    nowMs: Date.now,
    mayStartWithout: config.FORCE_START_WITHOUT_INITIAL_CONFIG,
  })
  isStarting = false
  return { ...source, stopParsing: () => inThread.stop() }
}

/** Reads the rules anew when their files change, and at SIGHUP. */
export function watchRules(deps: {
  readonly config: RuleFileConfig
  readonly source: FollowedRules
  readonly log: Log
  readonly onReloaded: () => void
}): { stop(): Promise<void> } {
  const { config, source, log, onReloaded } = deps
  const reload = async () => {
    await source.reload()
    onReloaded()
  }
  const onError = (err: unknown) => {
    log.error({ err }, 'the rule files cannot be watched')
  }
  const files = ruleFilesOf(placeOf(config))
  const watch = watchFiles({
    look: () => files.look(),
    folders: () => files.folders(),
    onChange: reload,
    onError,
  })
  const onSignal = () => {
    reload().catch(onError)
  }
  process.on('SIGHUP', onSignal)
  return {
    async stop() {
      process.off('SIGHUP', onSignal)
      await source.stopParsing()
      await watch.stop()
    },
  }
}

/** As far as they are read: there is room for few of many. */
function* pathsOf(rules: RuleSet): Generator<string> {
  for (const { path } of eachRule(rules)) yield path
}

function placeOf(config: RuleFileConfig): RulePlace {
  return {
    root: config.RUNTIME_ROOT,
    subdirectory: config.RUNTIME_SUBDIRECTORY,
    appDirectory: config.RUNTIME_APPDIRECTORY,
    watchesRoot: config.RUNTIME_WATCH_ROOT,
    ignoresDotFiles: config.RUNTIME_IGNOREDOTFILES,
  }
}
