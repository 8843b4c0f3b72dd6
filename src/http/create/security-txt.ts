// GET /.well-known/security.txt (RFC 9116): how to report security problems of this service.
import type { Request, Response } from 'express'
import * as z from 'zod'
import type { Setting } from '../../config/config.ts'
import type { Clock } from '../../resilience/deadline.ts'
import { sendNotFound } from '../not-found.ts'

/** The path of the file. */
export const SECURITY_TXT = '/.well-known/security.txt'

const CONTACTS_MAX = 10
const DAY_MS = 86_400_000
/** RFC 9116 recommends less than a year. */
const EXPIRES_DAYS = 180
const CACHE_SECONDS = 86_400

// Together, both accept what the pattern of `securityContacts` in the chart accepts.
const mailbox = /^mailto:[!-+.->A-~-]+@[!-+.->A-~-]+$/
const webPage = /^https:\/\/[A-Za-z0-9.-]+(:[1-9][0-9]{0,4})?(\/[!-+.-~-]*)?$/

/** SECURITY_CONTACT: URIs in the order of preference; none if unset. */
export const securityContactSetting: Setting<readonly string[]> = {
  about: 'contacts in /.well-known/security.txt, by preference',
  allowed: `1 to ${CONTACTS_MAX} mailto: or https:// URIs separated by commas`,
  fallback: 'unset: /.well-known/security.txt returns 404',
  schema: z
    .string()
    .optional()
    .transform((value, context) => {
      const contacts = value === undefined ? [] : value.split(',').map((item) => item.trim())
      if (!contacts.every(isContact) || contacts.length > CONTACTS_MAX) {
        context.addIssue({ code: 'custom', message: 'no contact' })
      }
      return contacts
    }),
}

function isContact(contact: string): boolean {
  return mailbox.test(contact) || webPage.test(contact)
}

/** Dependencies of the route. */
export interface SecurityTxtDeps {
  readonly baseUrl: string
  /** From SECURITY_CONTACT. */
  readonly securityContacts: readonly string[]
  readonly nowMs: Clock
}

/** The handler; the file does not exist without a contact. */
export function getSecurityTxt({ baseUrl, securityContacts, nowMs }: SecurityTxtDeps) {
  return (req: Request, res: Response): void => {
    if (securityContacts.length === 0) {
      sendNotFound(req, res, baseUrl)
      return
    }
    const body = renderSecurityTxt({ baseUrl, securityContacts }, nowMs())
    res.writeHead(200, {
      'Content-Type': 'text/plain; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': `public, max-age=${CACHE_SECONDS}`,
      'X-Content-Type-Options': 'nosniff',
    })
    res.end(body)
  }
}

function renderSecurityTxt(
  { baseUrl, securityContacts }: Pick<SecurityTxtDeps, 'baseUrl' | 'securityContacts'>,
  nowMs: number,
): string {
  const expiresMs = (Math.floor(nowMs / DAY_MS) + EXPIRES_DAYS) * DAY_MS
  const fields = [
    ...securityContacts.map((contact) => ['Contact', contact]),
    ['Expires', new Date(expiresMs).toISOString()],
    ['Preferred-Languages', 'en'],
    // RFC 9116 does not allow http: URIs.
    ...(baseUrl.startsWith('https:') ? [['Canonical', `${baseUrl}${SECURITY_TXT}`]] : []),
  ]
  return fields.map(([name, value]) => `${name}: ${value}\n`).join('')
}
