// The rules of the role `ratelimit`: loaded from the location in its settings, and reloaded when
// the files change.
import { requireDomain } from '../../limits/require-domain.ts'
import type { RuleSet } from '../../limits/rule.ts'
import { eachRule } from '../../limits/rule-tree.ts'
import { parseRules } from '../../limits/rules.ts'
import type { Stop } from '../../process/stop.ts'
import type { Log } from '../../telemetry/log.ts'
import { watchFiles } from '../../process/watch-files.ts'
import type { DenyCache } from '../decide/deny-cache.ts'
import { createThreadParser } from './parse-in-thread.ts'
import { ruleFilesOf } from './rule-files.ts'
import { openRuleSource, type RuleSource } from './rule-source.ts'
import type { RuleStats } from '../stats/rule-stats.ts'
import { openRulesCopy } from './rules-copy.ts'
import type { RuleFileConfig } from '../settings/settings.ts'

/** Loaded rules; `watch` starts the reloads. */
interface LoadedRules extends RuleSource {
  /** Reloads the rules when their files change, and on SIGHUP, until the result is called. */
  watch(onReloaded: () => void): Stop
}

/** Loads the rules. Throws OperatorError if they are invalid. */
export async function openRules(deps: {
  readonly config: RuleFileConfig
  /** Default of `deny_consumes` for fixed windows. */
  readonly denyConsumes: boolean
  readonly stats: RuleStats
  readonly denied: DenyCache | undefined
  readonly log: Log
}): Promise<LoadedRules> {
  const { config, denyConsumes, stats, denied, log } = deps
  const files = ruleFilesOf(config)
  const parsing = { mergeDomains: config.MERGE_DOMAIN_CONFIG, denyConsumes }
  const inThread = createThreadParser(parsing)
  let isStarting = true // before the process serves calls
  const source = await openRuleSource({
    folder: files.folder,
    readFiles: files.read,
    parse: async (read) => {
      const parsed = isStarting ? parseRules(read, parsing) : await inThread.parse(read)
      return requireDomain(parsed, { domain: config.REQUIRED_DOMAIN, place: files.folder })
    },
    ...(config.RULES_COPY !== '' && { copy: openRulesCopy(config.RULES_COPY, log) }),
    onLoaded: (rules) => {
      stats.service.configLoadSuccess++
      stats.declareRules(pathsOf(rules))
      denied?.clear()
    },
    onRejected: () => {
      stats.service.configLoadError++
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
      }
      const onError = (err: unknown) => {
        log.error({ err }, 'cannot watch the rule files')
      }
      const watch = watchFiles({ scan: files.scan, onChange, onError })
      const onSignal = () => {
        onChange().catch(onError)
      }
      process.on('SIGHUP', onSignal)
      return async () => {
        process.off('SIGHUP', onSignal)
        await inThread.stop()
        await watch.stop()
      }
    },
  }
}

/** Lazy, because the caller may use only a few of many paths. */
function* pathsOf(rules: RuleSet): Generator<string> {
  for (const { path } of eachRule(rules)) yield path
}
