// LOG_LEVEL of the role `ratelimit`: Curtail's levels and the aliases of envoyproxy/ratelimit.
import { z } from 'zod'
import type { Setting } from '../../config/config.ts'
import { logLevels } from '../../telemetry/log.ts'

type LogLevel = (typeof logLevels)[number]

const aliases: Readonly<Record<string, LogLevel>> = { warning: 'warn', panic: 'fatal' }

/** LOG_LEVEL. */
export const rateLimitLogLevelSetting: Setting<LogLevel> = {
  about: 'minimum level of the JSON lines on stdout',
  allowed: `one of ${[...logLevels, ...Object.keys(aliases)].join(', ')}, in any case`,
  fallback: 'info',
  schema: z
    .string()
    .transform((level) => aliases[level.toLowerCase()] ?? level.toLowerCase())
    .pipe(z.enum(logLevels))
    .optional()
    .transform((level) => level ?? 'info'),
}
