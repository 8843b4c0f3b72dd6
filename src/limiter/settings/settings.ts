// The settings of the role `ratelimit` for rules, responses and statistics. Those that
// envoyproxy/ratelimit has, too, have its names and defaults. The modules for Redis, gRPC and HTTP
// define their own settings.
import * as z from 'zod'
import { type ConfigOf, type Setting, withDefault } from '../../config/config.ts'
import { durationSetting } from '../../config/duration-setting.ts'
import {
  flagSetting,
  integerSetting,
  numberSetting,
  portSetting,
  stringSetting,
} from '../../config/settings.ts'
import { algorithms, defaultAlgorithm } from '../../limits/algorithms.ts'
import { logLevels } from '../../telemetry/log.ts'

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/

/** The location of the rule files and the options of loading them. */
export const ruleFileSettings = {
  CONFIG_TYPE: choiceSetting(
    'source of the rules: files, or an xDS server',
    ['FILE', 'GRPC_XDS_SOTW'],
    'FILE',
  ),
  RUNTIME_ROOT: stringSetting(
    'root folder, or a symbolic link to it; the rule files are in ' +
      'RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY',
    '/srv/runtime_data/current',
  ),
  RUNTIME_SUBDIRECTORY: subpathSetting('folder under RUNTIME_ROOT', ''),
  RUNTIME_APPDIRECTORY: subpathSetting(
    'folder of the rule files, under RUNTIME_ROOT/RUNTIME_SUBDIRECTORY',
    'config',
  ),
  RUNTIME_IGNOREDOTFILES: flagSetting(
    'whether files and folders whose names start with . are ignored; those with .. always are',
    false,
  ),
  RUNTIME_WATCH_ROOT: flagSetting(
    'whether rules are reloaded only when the symbolic link RUNTIME_ROOT changes; if false, or ' +
      'if it is no link, they are reloaded when any rule file changes',
    true,
  ),
  MERGE_DOMAIN_CONFIG: flagSetting('whether several files may define the same domain', false),
  FORCE_START_WITHOUT_INITIAL_CONFIG: flagSetting(
    'whether to start even if the first set of rules is invalid, or without waiting for xDS',
    false,
  ),
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: flagSetting(
    'whether health and readiness fail while no domain has rules',
    false,
  ),
  REQUIRED_DOMAIN: stringSetting(
    'domain that every set of rules must contain; other sets are rejected',
    '',
  ),
  RULES_COPY: stringSetting(
    'copy of the last valid rules, used after a restart if the rule files or the xDS server ' +
      'provide none',
    '',
  ),
  XDS_FALLBACK_VERSION: stringSetting(
    'gzipped file in which the controller stores its rules, used at the start if neither the xDS ' +
      'server nor RULES_COPY provides rules',
    '',
  ),
} as const

/** How limits are counted. */
export const limitSettings = {
  BACKEND_TYPE: onlySetting(
    'store of the counters: only redis is supported',
    'redis',
    'counters are stored only in Redis, not in memcache',
  ),
  DEFAULT_ALGORITHM: choiceSetting(
    `algorithm of rules that name none; ${defaultAlgorithm.name} if it does not support a limit`,
    algorithms.map(({ name }) => name),
    defaultAlgorithm.name,
  ),
  SHADOW_MODE: flagSetting('whether calls are only counted, and always admitted', false),
  QUOTA_MODE: flagSetting(
    'whether every rule is a quota: a call is denied only if all its quotas are exhausted',
    false,
  ),
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: flagSetting(
    'if true, denied calls consume no hits, except in rules with deny_consumes: true',
    false,
  ),
  LOCAL_CACHE_SIZE_IN_BYTES: integerSetting(
    'memory of the deny cache, which stores exceeded limits and denies further calls without ' +
      'a command to Redis; 0 = no deny cache',
    { min: 0, max: 999_999_999, fallback: 0 },
  ),
  LIMIT_REPLICAS: integerSetting(
    'number of processes that share each limit while Redis is slow or unavailable',
    { min: 1, max: 10_000, fallback: 1 },
  ),
  LIMIT_DEADLINE_MS: integerSetting(
    'milliseconds after which a call is decided without Redis; set it below the proxy’s timeout',
    { min: 1, max: 60_000, fallback: 15 },
  ),
} as const

/** Headers and metadata of responses. */
export const responseSettings = {
  LIMIT_RESPONSE_HEADERS_ENABLED: flagSetting(
    'whether responses have the headers of envoyproxy/ratelimit, which the next three settings ' +
      'name',
    false,
  ),
  LIMIT_LIMIT_HEADER: headerSetting('header of the limit', 'RateLimit-Limit'),
  LIMIT_REMAINING_HEADER: headerSetting('header of the remaining hits', 'RateLimit-Remaining'),
  LIMIT_RESET_HEADER: headerSetting('header of the seconds until the reset', 'RateLimit-Reset'),
  RESPONSE_DYNAMIC_METADATA: flagSetting(
    'whether responses return the request and the metadata of its rules as dynamic metadata',
    false,
  ),
  LIMIT_METADATA: flagSetting(
    'whether responses contain the dynamic metadata rls and rule, which the edge (Envoy) needs',
    true,
  ),
} as const

/** Which values of requests are shown to operators. */
export const topValuesSettings = {
  LIMIT_TOP_VALUES: flagSetting(
    'whether the descriptor values with the most denied hits are logged, and served at /top of ' +
      'the debug port',
    true,
  ),
} as const

/** Exports of statistics, in addition to /metrics on the admin port. */
export const statisticsSettings = {
  NEAR_LIMIT_RATIO: numberSetting('fraction of a limit above which hits count as near the limit', {
    min: 0,
    max: 1,
    fallback: 0.8,
  }),
  DISABLE_STATS: flagSetting(
    'whether to send no statistics to statsd, even if USE_STATSD is true; does not affect /metrics',
    false,
  ),
  USE_STATSD: flagSetting('whether statistics are sent to statsd', true),
  STATSD_HOST: stringSetting('host of statsd', 'localhost'),
  STATSD_PORT: portSetting('port of statsd', 8125),
  STATSD_PROTOCOL: onlySetting(
    'protocol of statsd: only tcp is supported',
    'tcp',
    'statsd is supported over TCP only',
  ),
  STATS_FLUSH_INTERVAL: durationSetting('time between two messages to statsd', {
    min: '100ms',
    max: '1h',
    fallback: '10s',
  }),
  EXTRA_TAGS: tagsSetting('tag:value pairs separated by commas, appended to names as .__tag=value'),
  USE_PROMETHEUS: flagSetting(
    'whether /metrics is also served at PROMETHEUS_ADDR and PROMETHEUS_PATH',
    false,
  ),
  PROMETHEUS_ADDR: addressSetting('address for USE_PROMETHEUS', ':9090'),
  PROMETHEUS_PATH: urlPathSetting('path for USE_PROMETHEUS', '/metrics'),
} as const

const levelAliases: Readonly<Record<string, string>> = { warning: 'warn', panic: 'fatal' }

/** LOG_LEVEL: Curtail's levels and the aliases of envoyproxy/ratelimit. */
export const rateLimitLogLevelSetting = withDefault({
  about: 'minimum level of the JSON lines on stdout',
  allowed: `one of ${[...logLevels, ...Object.keys(levelAliases)].join(', ')}, in any letter case`,
  fallback: 'info',
  schema: z
    .string()
    .transform((level) => levelAliases[level.toLowerCase()] ?? level.toLowerCase())
    .pipe(z.enum(logLevels)),
})

/** The values of `ruleFileSettings`. */
export type RuleFileConfig = ConfigOf<typeof ruleFileSettings>

/** A setting of envoyproxy/ratelimit with one supported value; other values abort startup. */
function onlySetting<T extends string>(about: string, only: T, reason: string): Setting<T> {
  const schema = z.literal(only)
  return withDefault({ about, allowed: `${only}, since ${reason}`, fallback: only, schema })
}

function choiceSetting<T extends string>(
  about: string,
  choices: readonly T[],
  fallback: NoInfer<T>,
): Setting<T> {
  const allowed = `one of ${choices.join(', ')}`
  return withDefault<string>({ about, allowed, fallback, schema: z.enum(choices) }) as Setting<T>
}

/** A relative path that stays below the path it is joined to. */
function subpathSetting(about: string, fallback: string): Setting<string> {
  const shown = fallback === '' ? 'none' : fallback
  const schema = z
    .string()
    .refine((path) => !path.split('/').includes('..'))
    .transform((path) => path.replace(/^\/+|\/+$/g, ''))
  return withDefault({ about, allowed: 'a path without ..', fallback, shown, schema })
}

function headerSetting(about: string, fallback: string): Setting<string> {
  const schema = z.string().regex(HEADER_NAME)
  return withDefault({ about, allowed: 'the name of a header', fallback, schema })
}

function urlPathSetting(about: string, fallback: string): Setting<string> {
  const schema = z.string().regex(/^\/[\x21-\x7e]{0,200}$/)
  return withDefault({ about, allowed: 'a path that starts with /', fallback, schema })
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
