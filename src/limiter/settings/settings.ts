// The settings of the role `ratelimit` that are about rules, answers and statistics, by the
// reference's names and with its defaults. Those of Redis, gRPC and HTTP stand with these.
import { z } from 'zod'
import type { ConfigOf, Setting } from '../../config/config.ts'
import { durationSetting } from '../../config/duration-setting.ts'
import { flagSetting } from '../../config/flag-setting.ts'
import { numberSetting } from '../../config/number-setting.ts'
import { rateLimitLogLevelSetting } from './log-level-setting.ts'
import { integerSetting, portSetting, textSetting } from '../../config/settings.ts'

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
const NO_EFFECT = 'accepted for the reference’s sake, without effect'

/** Where the rules are and how they are read. */
export const ruleFileSettings = {
  CONFIG_TYPE: onlySetting('where rules come from', 'FILE', 'rules come from files alone, not xDS'),
  RUNTIME_ROOT: textSetting(
    'folder, or link to one, under which the rule files lie',
    '/srv/runtime_data/current',
  ),
  RUNTIME_SUBDIRECTORY: pathPartSetting('path of their folder under RUNTIME_ROOT', ''),
  RUNTIME_APPDIRECTORY: pathPartSetting('folder of the rule files under that', 'config'),
  RUNTIME_IGNOREDOTFILES: flagSetting(
    'whether files and folders that begin with . are left out; those with .. always are',
    false,
  ),
  RUNTIME_WATCH_ROOT: flagSetting(
    'whether rules are read anew only when RUNTIME_ROOT, if it is a link, is swapped',
    true,
  ),
  MERGE_DOMAIN_CONFIG: flagSetting('whether several files may name the same domain', false),
  FORCE_START_WITHOUT_INITIAL_CONFIG: flagSetting(
    'whether a first set of rules that cannot be used does not end the start',
    false,
  ),
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: flagSetting(
    'whether health and readiness fail while no domain has rules',
    false,
  ),
  REQUIRED_DOMAIN: textSetting('domain without which a set of rules is refused', ''),
  RULES_COPY: textSetting(
    'file that keeps the last good rules, which a restart uses if the rule files have a fault',
    '',
  ),
} as const

/** How limits are counted. */
export const limitSettings = {
  BACKEND_TYPE: onlySetting(
    'where counters live',
    'redis',
    'counters live in Redis alone, not in memcache',
  ),
  SHADOW_MODE: flagSetting('whether every call is let pass, and only counted', false),
  QUOTA_MODE: flagSetting(
    'whether every rule is a quota: a call is denied only if all its rules are over their limit',
    false,
  ),
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: flagSetting(
    'whether hits of a call that is denied count nowhere, in rules that do not say deny_consumes',
    false,
  ),
  LOCAL_CACHE_SIZE_IN_BYTES: integerSetting(
    'memory for what is known to be over its limit, so that Redis is not asked; 0 = none',
    { min: 0, max: 999_999_999, fallback: 0 },
  ),
  EXPIRATION_JITTER_MAX_SECONDS: integerSetting(`${NO_EFFECT}: counters expire when they are due`, {
    min: 0,
    max: 999_999_999,
    fallback: 300,
  }),
  LIMIT_REPLICAS: integerSetting(
    'processes among which a limit is divided while Redis is away, for each of them counts alone',
    { min: 1, max: 10_000, fallback: 1 },
  ),
  LIMIT_DEADLINE_MS: integerSetting(
    'milliseconds after which a call is decided without Redis; below the timeout of the proxy',
    { min: 1, max: 60_000, fallback: 15 },
  ),
} as const

/** What answers tell. */
export const answerSettings = {
  LIMIT_RESPONSE_HEADERS_ENABLED: flagSetting(
    'whether answers carry the limit, what remains and the reset as headers',
    false,
  ),
  LIMIT_LIMIT_HEADER: headerSetting('header of the limit', 'RateLimit-Limit'),
  LIMIT_REMAINING_HEADER: headerSetting('header of what remains', 'RateLimit-Remaining'),
  LIMIT_RESET_HEADER: headerSetting('header of the seconds to the reset', 'RateLimit-Reset'),
  RESPONSE_DYNAMIC_METADATA: flagSetting(
    'whether responses carry the request and its rules’ metadata as dynamic metadata',
    false,
  ),
  LIMIT_METADATA: flagSetting(
    'whether responses carry the dynamic metadata rls and rule, which the edge needs',
    true,
  ),
} as const

/** Where statistics go; Prometheus always finds them at /metrics of the admin port. */
export const statisticsSettings = {
  NEAR_LIMIT_RATIO: numberSetting('part of a limit above which hits count as near it', {
    min: 0,
    max: 1,
    fallback: 0.8,
  }),
  DISABLE_STATS: flagSetting(
    'whether statistics are sent nowhere; /metrics and /stats stay',
    false,
  ),
  USE_STATSD: flagSetting('whether statistics are sent to statsd', true),
  STATSD_HOST: textSetting('host of statsd', 'localhost'),
  STATSD_PORT: portSetting('port of statsd', 8125),
  STATSD_PROTOCOL: onlySetting('protocol of statsd', 'tcp', 'statsd is spoken over TCP alone'),
  STATS_FLUSH_INTERVAL: durationSetting('time between two messages to statsd', {
    min: '100ms',
    max: '1h',
    fallback: '10s',
  }),
  EXTRA_TAGS: tagsSetting('tags put at the end of each statsd name, as .__tag=value'),
  USE_PROMETHEUS: flagSetting(
    'whether /metrics is also served at PROMETHEUS_ADDR and PROMETHEUS_PATH',
    false,
  ),
  PROMETHEUS_ADDR: addressSetting('address of that page', ':9090'),
  PROMETHEUS_PATH: urlPathSetting('path of that page', '/metrics'),
} as const

/** The log, with the reference's names of levels in any case. */
export const logSettings = {
  LOG_LEVEL: rateLimitLogLevelSetting,
  LOG_FORMAT: choiceSetting(`${NO_EFFECT}: the log is JSON lines`, ['text', 'json'], 'json'),
} as const

/** The reference's settings of tracing, which here follows the standard OTEL_* names alone. */
export const tracingSettings = {
  TRACING_ENABLED: flagSetting(`${NO_EFFECT}: OTEL_EXPORTER_OTLP_ENDPOINT turns tracing on`, false),
  TRACING_SERVICE_NAME: textSetting(`${NO_EFFECT}: see OTEL_SERVICE_NAME`, 'RateLimit'),
  TRACING_SERVICE_NAMESPACE: unsetText(`${NO_EFFECT}: see OTEL_RESOURCE_ATTRIBUTES`),
  TRACING_SERVICE_INSTANCE_ID: unsetText(`${NO_EFFECT}: see OTEL_RESOURCE_ATTRIBUTES`),
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

/** What RUNTIME_* and the like say. */
export type RuleFileConfig = ConfigOf<typeof ruleFileSettings>

/** A setting of the reference of which we know one value; the other ones end the start. */
function onlySetting<T extends string>(about: string, only: T, why: string): Setting<T> {
  return {
    about,
    allowed: `${only}, since ${why}`,
    fallback: only,
    schema: z
      .literal(only)
      .optional()
      .transform((text) => text ?? only),
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
      .transform((text) => text ?? fallback),
  }
}

function unsetText(about: string): Setting<string | undefined> {
  return { about, allowed: 'a text', fallback: 'unset', schema: z.string().optional() }
}

/** Part of a path that stays below what it is joined to. */
function pathPartSetting(about: string, fallback: string): Setting<string> {
  return {
    about,
    allowed: 'a path without ..',
    fallback: fallback === '' ? 'none' : fallback,
    schema: z
      .string()
      .refine((text) => !text.split('/').includes('..'))
      .transform((text) => text.replace(/^\/+|\/+$/g, ''))
      .optional()
      .transform((text) => text ?? fallback),
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
      .transform((text) => text ?? fallback),
  }
}

function urlPathSetting(about: string, fallback: string): Setting<string> {
  return {
    about,
    allowed: 'a path that begins with /',
    fallback,
    schema: z
      .string()
      .regex(/^\/[\x21-\x7e]{0,200}$/)
      .optional()
      .transform((text) => text ?? fallback),
  }
}

/** `host:port` in Go's form, where an absent host is every address. */
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
      .transform((text, context) => {
        const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]*)):(\d{1,5})$/.exec(text ?? fallback)
        const [, ipv6, name = '', port = ''] = found ?? []
        if (found !== null && Number(port) <= 65_535) {
          const host = ipv6 ?? name
          return { host: host === '' ? undefined : host, port: Number(port) }
        }
        context.addIssue({ code: 'custom', message: 'no address' })
        return z.NEVER
      }),
  }
}

/** `tag:value` separated by commas, as Go's envconfig reads them. */
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
        (text) =>
          new Map(
            (text === undefined ? [] : text.split(',')).map((pair) => {
              const at = pair.indexOf(':')
              return [pair.slice(0, at), pair.slice(at + 1)] as const
            }),
          ),
      ),
  }
}
