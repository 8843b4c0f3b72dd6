// The rules of an xDS server in this process, without a server: the test passes the versions.
import { parseConfig } from '../../../src/config/config.ts'
import { RULES_TYPE_URL } from '../../../src/limiter/rules/version-parser.ts'
import { openXdsRules, type XdsRulesDeps } from '../../../src/limiter/rules/xds-rules.ts'
import { ruleFileSettings } from '../../../src/limiter/settings/settings.ts'
import { RuleStats } from '../../../src/limiter/stats/rule-stats.ts'
import { readDiscoveryResponse } from '../../../src/protobuf/discovery.ts'
import { configBytes, type ConfigMessage, responseBytes } from './xds-messages.ts'

/** What a connection to an xDS server calls. */
export type XdsCallbacks = Parameters<XdsRulesDeps['connect']>[0]

/** A signal that does not abort. */
export const never = new AbortController().signal

/** A log line. */
interface LogLine {
  readonly level: string
  readonly version: unknown
  readonly source: unknown
  readonly message: string
}

/** A received version with these resources. */
export function versionOf(version: string, ...configs: readonly ConfigMessage[]) {
  const resources = configs.map((config) => ({
    typeUrl: RULES_TYPE_URL,
    value: configBytes(config),
  }))
  const about = { versionInfo: version, nonce: version, typeUrl: RULES_TYPE_URL }
  return readDiscoveryResponse(responseBytes({ ...about, resources }))
}

/** Opens the rules; `onConnect` is called when they connect, with the log, which grows. */
export async function openRulesOfXds(
  env: Readonly<Record<string, string>> = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
  onConnect: (on: XdsCallbacks, logged: readonly LogLine[]) => void = () => undefined,
) {
  const logged: LogLine[] = []
  const stats = new RuleStats({ nearLimitRatio: 0.8 })
  const logTo =
    (level: string) =>
    ({ version, source }: Partial<LogLine>, message: string) => {
      logged.push({ level, version, source, message })
    }
  let callbacks: XdsCallbacks | undefined
  let reconnects = 0
  const rules = await openXdsRules({
    config: parseConfig(ruleFileSettings, { ...env }),
    denyConsumes: true,
    defaultAlgorithm: 'fixed_window',
    stats,
    denyCache: undefined,
    log: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') } as never,
    server: 'xds:1',
    signal: never,
    connect: (on) => {
      callbacks = on
      onConnect(on, logged)
      const reconnect = () => {
        reconnects++
      }
      return { reconnect, stop: () => Promise.resolve() }
    },
  })
  return {
    stats,
    logged,
    reconnects: () => reconnects,
    domains: () => [...rules.rules().keys()],
    state: () => rules.state(),
    stop: rules.watch(() => undefined),
    apply: async (version: string, config: ConfigMessage, superseded = never) =>
      callbacks?.apply(versionOf(version, config), superseded),
    callbacks: () => callbacks,
  }
}
