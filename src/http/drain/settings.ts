// The settings of the process that drains an Envoy.
import type { Setting } from '../../config/config.ts'
import { integerSetting, logLevelSetting, portSetting } from '../../config/settings.ts'
import { baseUrlSetting } from '../settings.ts'

const ADMIN_URL = 'http://127.0.0.1:9901'

const envoyAdminUrlSetting: Setting<string> = {
  about: 'URL of the admin interface of Envoy',
  allowed: 'an http:// or https:// URL without path, query or user',
  fallback: ADMIN_URL,
  schema: baseUrlSetting.schema.transform((url) => url ?? ADMIN_URL),
}

/** Envoy's admin URL, the port to listen on, and the time-outs. */
export const drainSettings = {
  ENVOY_ADMIN_URL: envoyAdminUrlSetting,
  DRAIN_PORT: portSetting('port of /livez, /readyz and /metrics', 8099),
  DRAIN_SECONDS: integerSetting('seconds after which a drain stops, even with open connections', {
    min: 1,
    max: 3600,
    fallback: 30,
  }),
  DRAIN_QUIET_SECONDS: integerSetting(
    'an Envoy without open connections counts as drained after this many seconds without a new one',
    { min: 0, max: 3600, fallback: 5 },
  ),
  LOG_LEVEL: logLevelSetting,
} as const
