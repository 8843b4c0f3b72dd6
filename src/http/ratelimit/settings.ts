// The settings of the rate-limit service's two HTTP listeners, by the reference's names.
import { portSetting, textSetting } from '../../config/settings.ts'

/** Settings of `/json` and `/healthcheck`, and of the debug port. */
export const rateLimitHttpSettings = {
  HOST: textSetting('address on which /json and /healthcheck are served', '0.0.0.0'),
  PORT: portSetting('port on which /json and /healthcheck are served', 8080),
  DEBUG_HOST: textSetting('address on which /rlconfig and /stats are served', '0.0.0.0'),
  DEBUG_PORT: portSetting('port on which /rlconfig and /stats are served', 6070),
} as const
