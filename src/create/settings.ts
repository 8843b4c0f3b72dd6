// The settings of pools of codes.
import { z } from 'zod'
import type { Setting } from '../config/config.ts'

/** CODE_POOL. */
export const codePoolSetting: Setting<string> = {
  about: 'pool of the generated codes',
  allowed: '1 to 128 of the characters A-Z, a-z, 0-9, dot, _, - and /',
  fallback: 'default',
  schema: z
    .string()
    .regex(/^[\w./-]{1,128}$/)
    .optional()
    .transform((pool) => pool ?? 'default'),
}
