// The settings of two HTTP listeners of the rate-limit service, named as in envoyproxy/ratelimit.
import { portSetting, stringSetting } from '../../config/settings.ts'

/** Settings of `/json` and `/healthcheck`, and of the debug port. */
export const rateLimitHttpSettings = {
  HOST: stringSetting('address on which /json and /healthcheck are served', '0.0.0.0'),
  PORT: portSetting('port on which /json and /healthcheck are served', 8080),
  DEBUG_HOST: stringSetting(
    'address on which /rlconfig, /stats, /top and /explain are served',
    '0.0.0.0',
  ),
  DEBUG_PORT: portSetting('port on which /rlconfig, /stats, /top and /explain are served', 6070),
} as const
