// The settings of the role `refill`. Among the roles that use Cassandra, only `refill` may have the
// code secret, the key of the permutation that generates codes. The role `standalone` generates its
// own secret.
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { SECRET_BYTES } from '../codes/permutation.ts'
import type { Setting } from '../config/config.ts'

/** CODE_SECRET_FILE; the parsed value is the content of the file. */
export const codeSecretSetting: Setting<Uint8Array> = {
  about: 'file with the code secret, the key that generates codes; never change it',
  allowed: `the path of a readable file of exactly ${SECRET_BYTES} bytes`,
  fallback: 'required',
  schema: z.string().transform((path, context) => {
    const secret = readSecret(path)
    if (secret?.length === SECRET_BYTES) return secret
    context.addIssue({ code: 'custom', message: 'unreadable, or of another length' })
    return z.NEVER
  }),
}

/** POOL_TARGET, in codes. */
export const poolTargetSetting: Setting<number> = {
  about: 'number of codes that the pool contains after a refill',
  allowed: 'an integer from 1 to 100000000',
  fallback: 'required',
  schema: z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number)
    .pipe(z.int().min(1).max(100_000_000)),
}

function readSecret(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined // config.ts reports it, with the allowed values
  }
}
