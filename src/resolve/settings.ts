// The settings of the redirect's lookup.
import type { Setting } from '../config/config.ts'
import { integerSetting } from '../config/settings.ts'

/** STALE_SECONDS. */
export const staleSecondsSetting: Setting<number> = integerSetting(
  'seconds for which a stale target may be served while store and cache are both ' +
    'unavailable; 0 = never',
  { min: 0, max: 2_592_000, fallback: 86_400 },
)
