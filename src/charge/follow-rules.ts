// The rules of the role `ratelimit`: opened from where its settings say, and followed as they
// change.
import { listRules } from '../limits/rule-tree.ts'
import { parseRules } from '../limits/rules.ts'
import type { Log } from '../process/log.ts'
import { watchFiles } from '../process/watch-files.ts'
import type { DenyCache } from './deny-cache.ts'
import { ruleFilesOf, type RulePlace } from './rule-files.ts'
import { openRuleSource, type RuleSource } from './rule-source.ts'
import type { RuleStats } from './rule-stats.ts'
import type { RuleFileConfig } from './settings.ts'

/** Opens the rules, all of them right. Throws OperatorError. */
export function openRules(deps: {
  readonly config: RuleFileConfig
  /** What `deny_consumes` is where a fixed window does not say it. */
  readonly denyConsumes: boolean
  readonly stats: RuleStats
  readonly denied: DenyCache | undefined
  readonly log: Log
}): Promise<RuleSource> {
  const { config, denyConsumes, stats, denied, log } = deps
  const files = ruleFilesOf(placeOf(config))
  const parsing = { mergeDomains: config.MERGE_DOMAIN_CONFIG, denyConsumes }
  return openRuleSource({
    folder: files.folder,
    readFiles: () => files.read(),
    parse: (texts) => parseRules(texts, parsing),
    onLoaded: (rules) => {
      stats.service.configLoadSuccess++
      stats.declareRules(listRules(rules).map(({ path }) => path))
      denied?.clear()
    },
    onRefused: () => {
      stats.service.configLoadError++
    },
    log,
    nowMs: Date.now,
    mayStartWithout: config.FORCE_START_WITHOUT_INITIAL_CONFIG,
  })
}

/** Reads the rules anew when their files change, and at SIGHUP. */
export function watchRules(deps: {
  readonly config: RuleFileConfig
  readonly source: RuleSource
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
      await watch.stop()
    },
  }
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
