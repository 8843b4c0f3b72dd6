// The setting OPERATOR: the name that commands send to the audit log of the admin API.
import { userInfo } from 'node:os'
import * as z from 'zod'
import type { Setting } from '../../config/config.ts'

const nameSyntax = /^[\x21-\x7e]{1,64}$/

/** OPERATOR; `undefined` if the operating system has no usable name either. */
export const operatorSetting: Setting<string | undefined> = {
  about: 'name of the operator in the audit log of the admin API',
  allowed: '1 to 64 visible ASCII characters',
  fallback: "the name of the operating system's user",
  schema: z
    .string()
    .regex(nameSyntax)
    .optional()
    .transform((name) => name ?? userName()),
}

function userName(): string | undefined {
  try {
    const { username } = userInfo()
    return nameSyntax.test(username) ? username : undefined
  } catch {
    return undefined // the user has no entry in the user database, as in many containers
  }
}
