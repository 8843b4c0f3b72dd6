// The settings of the redirect's lookup, and of blocked targets.
import * as z from 'zod'
import type { Setting } from '../config/config.ts'
import { integerSetting, optionalString } from '../config/settings.ts'

/** STALE_SECONDS. */
export const staleSecondsSetting: Setting<number> = integerSetting(
  'maximum age, in seconds, of the stale targets that a pod serves while Cassandra and ' +
    'Redis are both unavailable; 0: none is served',
  { min: 0, max: 2_592_000, fallback: 86_400 },
)

/** BLOCKED_TARGETS. */
export const blockedTargetsSetting: Setting<string | undefined> = {
  ...optionalString('file or folder of files with blocked targets, one host or URL per line'),
  allowed: 'a path',
}

/** BLOCKED_STATUS. */
export const blockedStatusSetting: Setting<404 | 410 | 451> = {
  about: 'status of the response for a link whose target is blocked; 404: as for unknown codes',
  allowed: '404, 410 or 451',
  fallback: '404',
  schema: z
    .enum(['404', '410', '451'])
    .optional()
    .transform((value) => (value === '410' ? 410 : value === '451' ? 451 : 404)),
}
