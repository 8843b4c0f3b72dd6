// The setting OPERATOR: the name that commands send to the audit log of the admin API. Commands
// that run in a pod, where `kubectl exec` sets no variables, also take it as an option.
import { userInfo } from 'node:os'
import * as z from 'zod'
import type { Setting } from '../../config/config.ts'
import { UsageError } from '../../process/role.ts'

const nameSyntax = /^[\x21-\x7e]{1,64}$/
const ALLOWED = '1 to 64 visible ASCII characters'

/** OPERATOR; `undefined` if the operating system has no usable name either. */
export const operatorSetting: Setting<string | undefined> = {
  about: 'name of the operator in the audit log of the admin API',
  allowed: ALLOWED,
  fallback: "the name of the operating system's user",
  schema: z
    .string()
    .regex(nameSyntax)
    .optional()
    .transform((name) => name ?? userName()),
}

/** Throws UsageError unless the value of the option is valid or absent. */
export function checkOperator(operator: string | undefined): void {
  if (operator === undefined || nameSyntax.test(operator)) return
  throw new UsageError(`--operator must be ${ALLOWED}: it is ${JSON.stringify(operator)}`)
}

function userName(): string | undefined {
  try {
    const { username } = userInfo()
    return nameSyntax.test(username) ? username : undefined
  } catch {
    return undefined // the user has no entry in the user database, as in many containers
  }
}
