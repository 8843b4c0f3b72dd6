// The setting of the code pool, which several roles share.
import * as z from 'zod'
import { withDefault } from '../config/config.ts'

/** CODE_POOL. */
export const codePoolSetting = withDefault({
  about: 'name of the pool of codes that the process uses',
  allowed: '1 to 128 of the characters A-Z, a-z, 0-9, dot, _, - and /',
  fallback: 'default',
  schema: z.string().regex(/^[\w./-]{1,128}$/),
})
