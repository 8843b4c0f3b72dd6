// LOG_LEVEL of the role `ratelimit`: besides our own levels those of the reference, in any case.
import { z } from 'zod'
import type { Setting } from '../../config/config.ts'
import { logLevels } from '../../telemetry/log.ts'

type LogLevel = (typeof logLevels)[number]

const further: Readonly<Record<string, LogLevel>> = { warning: 'warn', panic: 'fatal' }

/** LOG_LEVEL. */
export const rateLimitLogLevelSetting: Setting<LogLevel> = {
  about: 'least level of the JSON lines on stdout',
  allowed: `one of ${[...logLevels, ...Object.keys(further)].join(', ')}, in any case`,
  fallback: 'info',
  schema: z
    .string()
    .transform((text) => further[text.toLowerCase()] ?? text.toLowerCase())
    .pipe(z.enum(logLevels))
    .optional()
    .transform((level) => level ?? 'info'),
}
