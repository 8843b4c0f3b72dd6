// The settings of the redirect's lookup.
import type { Setting } from '../config/config.ts'
import { integerSetting } from '../config/settings.ts'

/** STALE_SECONDS. */
export const staleSecondsSetting: Setting<number> = integerSetting(
  'maximum age, in seconds, of the targets that a pod serves from memory while Cassandra and ' +
    'Redis are both unavailable; 0 = never',
  { min: 0, max: 2_592_000, fallback: 86_400 },
)
