// Reports a change of an operator list to the audit log of the admin API. The change is written
// already: if the admin API does not record it, the command prints the line of the audit log, and
// succeeds. It also warns if the service does not read the list.
import * as z from 'zod'
import { UnknownOutcomeError } from '../process/list-target.ts'
import { OperatorError } from '../process/role.ts'
import { type AdminTarget, callAdminApi } from './admin-client.ts'

/** The outcome of a change; `unknown`: it was possibly written. */
type Outcome = 'success' | 'unknown'

/** Applies a change, and reports the action that describes it; rethrows the errors of `apply`. */
export type ChangeReporter<A extends object> = <T>(
  actionOf: () => Omit<A, 'outcome'>,
  apply: () => Promise<T>,
) => Promise<T>

const PATH = '/admin/actions'
const REPORT_MS_MAX = 2000
/** A header that names the setting which the service must have to read the list. */
const UNSET_SETTING = 'Curtail-Unset-Setting'
const settingName = /^[A-Z_]{1,64}$/

/** Creates the function that applies and reports changes; `warn` prints lines. */
export function createChangeReporter<A extends object>(
  target: AdminTarget,
  warn: (lines: string) => void,
): ChangeReporter<A> {
  const report = async (action: object, outcome: Outcome) => {
    const json = { ...action, outcome }
    const onHeaders = (headers: Headers) => {
      const setting = headers.get(UNSET_SETTING) ?? ''
      if (settingName.test(setting)) warn(unreadList(target.url, setting))
    }
    const timing = { msMax: REPORT_MS_MAX, isChange: false }
    const request = { method: 'POST', path: PATH, json, ...timing, onHeaders }
    try {
      await callAdminApi(target, request, z.undefined())
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      const { operator } = target
      const time = new Date().toISOString()
      const line = JSON.stringify({ time, ...json, operator, msg: 'operator action' })
      warn(`curtail: ${error.message}; add this line to the audit log:\n${line}\n`)
    }
  }
  return async (actionOf, apply) => {
    try {
      const result = await apply()
      await report(actionOf(), 'success')
      return result
    } catch (error) {
      if (error instanceof UnknownOutcomeError) await report(actionOf(), 'unknown')
      throw error
    }
  }
}

function unreadList(url: string, setting: string): string {
  return (
    `curtail: the list is changed, but the service at ${url} does not read it, because its ` +
    `setting ${setting} is unset: set it to the path of the list, and restart the service\n`
  )
}
