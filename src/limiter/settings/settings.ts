// The settings of the role `ratelimit` for rules, responses and statistics, with the names and
// defaults of envoyproxy/ratelimit. The settings of Redis, gRPC and HTTP are in those modules.
import { z } from 'zod'
import type { ConfigOf, Setting } from '../../config/config.ts'
import { durationSetting } from '../../config/duration-setting.ts'
import { flagSetting } from '../../config/flag-setting.ts'
import { numberSetting } from '../../config/number-setting.ts'
import { rateLimitLogLevelSetting } from './log-level-setting.ts'
import { integerSetting, portSetting, stringSetting } from '../../config/settings.ts'

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
const NO_EFFECT = 'accepted for compatibility, without effect'

/** The location of the rule files and the options of loading them. */
export const ruleFileSettings = {
  CONFIG_TYPE: onlySetting('source of the rules', 'FILE', 'rules are read only from files'),
  RUNTIME_ROOT: stringSetting(
    'folder of the rule files, or a symbolic link to it',
    '/srv/runtime_data/current',
  ),
  RUNTIME_SUBDIRECTORY: subpathSetting('path of their folder under RUNTIME_ROOT', ''),
  RUNTIME_APPDIRECTORY: subpathSetting('folder of the rule files under that', 'config'),
  RUNTIME_IGNOREDOTFILES: flagSetting(
    'whether files and folders that start with . are ignored; those with .. always are',
    false,
  ),
  RUNTIME_WATCH_ROOT: flagSetting(
    'whether rules are reloaded only when RUNTIME_ROOT, if it is a symbolic link, is swapped',
    true,
  ),
  MERGE_DOMAIN_CONFIG: flagSetting('whether several files may define the same domain', false),
  FORCE_START_WITHOUT_INITIAL_CONFIG: flagSetting(
    'whether to start although the first set of rules has a fault',
    false,
  ),
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: flagSetting(
    'whether health and readiness fail while no domain has rules',
    false,
  ),
  REQUIRED_DOMAIN: stringSetting('domain without which a set of rules is rejected', ''),
  RULES_COPY: stringSetting(
    'file that keeps the last good rules, which a restart uses if the rule files have a fault',
    '',
  ),
} as const

/** How limits are counted. */
export const limitSettings = {
  BACKEND_TYPE: onlySetting(
    'store of the counters',
    'redis',
    'counters are stored only in Redis, not in memcache',
  ),
  SHADOW_MODE: flagSetting('whether every call is admitted, and only counted', false),
  QUOTA_MODE: flagSetting(
    'whether every rule is a quota: a call is denied only if all its quotas are exhausted',
    false,
  ),
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: flagSetting(
    'whether the hits of a denied call are not counted, in rules without deny_consumes',
    false,
  ),
  LOCAL_CACHE_SIZE_IN_BYTES: integerSetting(
    'memory of the deny cache, which decides without Redis; 0 = none',
    { min: 0, max: 999_999_999, fallback: 0 },
  ),
  EXPIRATION_JITTER_MAX_SECONDS: integerSetting(`${NO_EFFECT}: counters expire without jitter`, {
    min: 0,
    max: 999_999_999,
    fallback: 300,
  }),
  LIMIT_REPLICAS: integerSetting(
    'number of processes that share each limit while Redis is slow or unavailable',
    { min: 1, max: 10_000, fallback: 1 },
  ),
  LIMIT_DEADLINE_MS: integerSetting(
    'milliseconds after which a call is decided without Redis; below the timeout of the proxy',
    { min: 1, max: 60_000, fallback: 15 },
  ),
} as const

/** Headers and metadata of responses. */
export const responseSettings = {
  LIMIT_RESPONSE_HEADERS_ENABLED: flagSetting(
    'whether responses have the limit, the remaining hits and the reset as headers',
    false,
  ),
  LIMIT_LIMIT_HEADER: headerSetting('header of the limit', 'RateLimit-Limit'),
  LIMIT_REMAINING_HEADER: headerSetting('header of the remaining hits', 'RateLimit-Remaining'),
  LIMIT_RESET_HEADER: headerSetting('header of the seconds to the reset', 'RateLimit-Reset'),
  RESPONSE_DYNAMIC_METADATA: flagSetting(
    'whether responses have the request and its rules’ metadata as dynamic metadata',
    false,
  ),
  LIMIT_METADATA: flagSetting(
    'whether responses have the dynamic metadata rls and rule, which the edge needs',
    true,
  ),
} as const

/** Exports of statistics, in addition to /metrics on the admin port. */
export const statisticsSettings = {
  NEAR_LIMIT_RATIO: numberSetting('share of a limit above which hits count as near it', {
    min: 0,
    max: 1,
    fallback: 0.8,
  }),
  DISABLE_STATS: flagSetting('whether to send no statistics; /metrics and /stats remain', false),
  USE_STATSD: flagSetting('whether statistics are sent to statsd', true),
  STATSD_HOST: stringSetting('host of statsd', 'localhost'),
  STATSD_PORT: portSetting('port of statsd', 8125),
  STATSD_PROTOCOL: onlySetting('protocol of statsd', 'tcp', 'statsd is supported over TCP only'),
  STATS_FLUSH_INTERVAL: durationSetting('time between two messages to statsd', {
    min: '100ms',
    max: '1h',
    fallback: '10s',
  }),
  EXTRA_TAGS: tagsSetting('tags appended to each statsd name, as .__tag=value'),
  USE_PROMETHEUS: flagSetting(
    'whether /metrics is also served at PROMETHEUS_ADDR and PROMETHEUS_PATH',
    false,
  ),
  PROMETHEUS_ADDR: addressSetting('address of that page', ':9090'),
  PROMETHEUS_PATH: urlPathSetting('path of that page', '/metrics'),
} as const

/** The settings of the log. */
export const logSettings = {
  LOG_LEVEL: rateLimitLogLevelSetting,
  LOG_FORMAT: choiceSetting(`${NO_EFFECT}: the log is JSON lines`, ['text', 'json'], 'json'),
} as const

/** The tracing settings of envoyproxy/ratelimit; Curtail uses only the standard OTEL_* names. */
export const tracingSettings = {
  TRACING_ENABLED: flagSetting(`${NO_EFFECT}: OTEL_EXPORTER_OTLP_ENDPOINT enables tracing`, false),
  TRACING_SERVICE_NAME: stringSetting(`${NO_EFFECT}: see OTEL_SERVICE_NAME`, 'RateLimit'),
  TRACING_SERVICE_NAMESPACE: unusedString(`${NO_EFFECT}: see OTEL_RESOURCE_ATTRIBUTES`),
  TRACING_SERVICE_INSTANCE_ID: unusedString(`${NO_EFFECT}: see OTEL_RESOURCE_ATTRIBUTES`),
  TRACING_EXPORTER_PROTOCOL: choiceSetting(
    `${NO_EFFECT}: see OTEL_EXPORTER_OTLP_PROTOCOL`,
    ['http', 'grpc', 'gRPC'],
    'http',
  ),
  TRACING_SAMPLING_RATE: numberSetting(`${NO_EFFECT}: the caller’s traceparent decides`, {
    min: 0,
    max: 1,
    fallback: 1,
  }),
} as const

/** The values of `ruleFileSettings`. */
export type RuleFileConfig = ConfigOf<typeof ruleFileSettings>

/** A setting of envoyproxy/ratelimit with one supported value; other values abort startup. */
function onlySetting<T extends string>(about: string, only: T, reason: string): Setting<T> {
  return {
    about,
    allowed: `${only}, since ${reason}`,
    fallback: only,
    schema: z
      .literal(only)
      .optional()
      .transform((value) => value ?? only),
  }
}

function choiceSetting<T extends string>(
  about: string,
  choices: readonly [T, ...T[]],
  fallback: NoInfer<T>,
): Setting<T> {
  return {
    about,
    allowed: `one of ${choices.join(', ')}`,
    fallback,
    schema: z
      .enum(choices)
      .optional()
      .transform((value) => value ?? fallback),
  }
}

function unusedString(about: string): Setting<string | undefined> {
  return { about, allowed: 'a string', fallback: 'unset', schema: z.string().optional() }
}

/** A relative path that stays below the path it is joined to. */
function subpathSetting(about: string, fallback: string): Setting<string> {
  return {
    about,
    allowed: 'a path without ..',
    fallback: fallback === '' ? 'none' : fallback,
    schema: z
      .string()
      .refine((path) => !path.split('/').includes('..'))
      .transform((path) => path.replace(/^\/+|\/+$/g, ''))
      .optional()
      .transform((path) => path ?? fallback),
  }
}

function headerSetting(about: string, fallback: string): Setting<string> {
  return {
    about,
    allowed: 'the name of a header',
    fallback,
    schema: z
      .string()
      .regex(HEADER_NAME)
      .optional()
      .transform((name) => name ?? fallback),
  }
}

function urlPathSetting(about: string, fallback: string): Setting<string> {
  return {
    about,
    allowed: 'a path that starts with /',
    fallback,
    schema: z
      .string()
      .regex(/^\/[\x21-\x7e]{0,200}$/)
      .optional()
      .transform((path) => path ?? fallback),
  }
}

/** `host:port` in Go's form; an absent host means all addresses. */
function addressSetting(
  about: string,
  fallback: string,
): Setting<{ readonly host: string | undefined; readonly port: number }> {
  return {
    about,
    allowed: 'an address such as :9090, 127.0.0.1:9090 or [::1]:9090',
    fallback,
    schema: z
      .string()
      .optional()
      .transform((address, context) => {
        const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]*)):(\d{1,5})$/.exec(address ?? fallback)
        const [, ipv6, name = '', port = ''] = match ?? []
        if (match !== null && Number(port) <= 65_535) {
          const host = ipv6 ?? name
          return { host: host === '' ? undefined : host, port: Number(port) }
        }
        context.addIssue({ code: 'custom', message: 'no address' })
        return z.NEVER
      }),
  }
}

/** `tag:value` pairs separated by commas, as Go's envconfig parses them. */
function tagsSetting(about: string): Setting<ReadonlyMap<string, string>> {
  return {
    about,
    allowed: 'tag:value pairs separated by commas',
    fallback: 'none',
    schema: z
      .string()
      .regex(/^[^\s:,|]+:[^\s,]*(,[^\s:,|]+:[^\s,]*)*$/)
      .optional()
      .transform(
        (pairs) =>
          new Map(
            (pairs === undefined ? [] : pairs.split(',')).map((pair) => {
              const at = pair.indexOf(':')
              return [pair.slice(0, at), pair.slice(at + 1)] as const
            }),
          ),
      ),
  }
}
