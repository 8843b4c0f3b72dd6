// A report of abuse: what a person entered in the form about a link, and nothing else about the
// person. Its id contains the time of the report, so that ids sort by time.
import { randomBytes } from 'node:crypto'

/** Why a link is reported. */
export const reportReasons = ['phishing', 'malware', 'spam', 'illegal', 'other'] as const

/** One of `reportReasons`. */
export type ReportReason = (typeof reportReasons)[number]

/** A stored report. */
export interface Report {
  /** From `newReportId`. */
  readonly id: string
  /** The reported code. A link with this code need not exist. */
  readonly code: string
  readonly reason: ReportReason
  /** At most DETAILS_LENGTH_MAX characters; `null` if none were entered. */
  readonly details: string | null
  /** An e-mail address; `null` if none was entered. */
  readonly contact: string | null
}

const DAY_MS = 86_400_000

/** How long a report is kept. */
export const REPORT_TTL_MS = 90 * DAY_MS

/** Maximum length of the details, in UTF-16 code units, as browsers count them. */
export const DETAILS_LENGTH_MAX = 2000

/** Maximum length of an e-mail address (RFC 5321). */
export const CONTACT_LENGTH_MAX = 254

/** Base 32 digits in ASCII order, without characters that look alike. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
/** 45 bits of milliseconds, until the year 3084. */
const TIME_LENGTH = 9
/** 35 random bits: sufficient within a millisecond, since reports are few. */
const RANDOM_LENGTH = 7
const idSyntax = new RegExp(`^[${DIGITS}]{${TIME_LENGTH + RANDOM_LENGTH}}$`)

/** Creates the id of a report that is received at `nowMs`. */
export function newReportId(nowMs: number): string {
  const random = Array.from(randomBytes(RANDOM_LENGTH), (byte) => DIGITS[byte % DIGITS.length])
  return idBoundAt(nowMs) + random.join('')
}

/** Whether `id` has the syntax of an id. */
export function isReportId(id: string): boolean {
  return idSyntax.test(id)
}

/**
 * The bound of the ids of `ms`: sorts before every id of `ms` or later, and after every earlier
 * one. It is the prefix of every id of `ms`, and not an id itself.
 */
export function idBoundAt(ms: number): string {
  const digits: string[] = []
  for (let rest = Math.max(0, Math.floor(ms)); digits.length < TIME_LENGTH;) {
    digits.unshift(DIGITS[rest % DIGITS.length] ?? '')
    rest = Math.floor(rest / DIGITS.length)
  }
  return digits.join('')
}

/** When the report with this id was received, in milliseconds since the Unix epoch. */
export function receivedAtMs(id: string): number {
  let ms = 0
  for (let at = 0; at < TIME_LENGTH; at++) ms = ms * DIGITS.length + DIGITS.indexOf(id.charAt(at))
  return ms
}

/** The number of a UTC day since the Unix epoch. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

/** The bound of the ids of a day: sorts before each of them, and after every earlier id. */
export function idBoundOfDay(day: number): string {
  return idBoundAt(day * DAY_MS)
}
