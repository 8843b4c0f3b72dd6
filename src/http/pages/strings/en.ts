// The strings of all pages in English. Placeholders are in braces, code between backticks.
import type { AliasFault } from '../../../links/alias.ts'
import type { TargetFault } from '../../../links/target-url.ts'
import { type ProblemName, problemTypes } from '../../problem.ts'
import { abuseEn } from './abuse-en.ts'

/** A fault of a form field: a code of the API's `errors`, or a problem that concerns one field. */
export type FormFault =
  | TargetFault
  | AliasFault
  | ('required' | 'duplicate' | 'invalid-type' | 'out-of-range')
  | ('alias-taken' | 'target-blocked')

/** A problem type as its page explains it. */
interface ProblemStrings {
  readonly title: string
  readonly meaning: string
}

/** What every language must have. */
export type Strings = typeof en

const dateRule = 'Choose a date from tomorrow on, and at most 3650 days from today.'

/** English, the language of clients that prefer no other supported language. */
export const en = {
  language: 'en',
  /** The locale of dates and times. */
  locale: 'en-GB',
  layout: {
    skip: 'Skip to the content',
    site: 'Site',
    tagline: 'Short links that never change where they point.',
    reference: 'API reference',
    reportAbuse: 'Report abuse',
  },
  home: {
    title: 'Curtail – create a short link',
    faultyTitle: 'No link created yet – Curtail',
    createdTitle: 'Your short link – Curtail',
    heading: 'Create a short link',
    lead: 'Paste a link and get a short one that always points to the same place.',
    /** Instead of the lead, if creates require an API key. */
    keyLead: 'Each short link always points to the same place.',
    keyRequired:
      'This service creates links only for programs that send an API key in the header ' +
      '`X-API-Key`. The operator of the service issues the keys.',
    optional: 'optional',
    longUrl: 'Long link',
    longUrlHint: 'Without http:// or https://, the form adds https://',
    alias: 'Alias',
    aliasHint: 'Up to 10 letters, digits, - or _. If empty, the service chooses one.',
    suggestion: 'Perhaps available:',
    useSuggestion: 'Use it',
    expiry: 'Expires',
    /** The lifetimes of the list, by number of days. */
    days: {
      '': 'never',
      1: 'in 1 day',
      7: 'in 7 days',
      30: 'in 30 days',
      365: 'in 1 year (365 days)',
      date: 'on a date …',
    },
    date: 'Date of the expiry',
    /** Shown without JavaScript; with it, the time of expiry is shown. */
    expiryHint: 'The time of day is that of the creation; a date is in UTC.',
    submit: 'Create',
    recent: 'Recent links of this browser',
    recentHint: 'The last 20 links; only this browser stores the list.',
    clear: 'Clear the list',
    cleared: 'The list of recent links is empty.',
  },
  result: {
    heading: 'Your short link is ready',
    target: 'Points to',
    expiry: 'Expires',
    never: 'never',
    copy: 'Copy',
    share: 'Share',
    qr: 'QR code of the short link',
    download: 'Download the QR code',
  },
  /** Sentences at a field. */
  faults: {
    required: 'The long link is required.',
    'too-long': 'The long link is too long: at most 2048 characters are allowed.',
    'surrounding-space': 'The long link must not start or end with white space.',
    'not-absolute-http':
      'The long link is not a web address, such as https://example.com/page: it must start with ' +
      'http:// or https:// and a host.',
    'not-a-url': 'The long link has no valid host, such as example.com.',
    credentials: 'The long link must not contain a user name or password.',
    'own-host': 'The long link must not be a link of this service.',
    'target-blocked': 'The operator of this service blocks this target.',
    malformed: 'The alias must be 1 to 10 of the characters 0-9, A-Z, a-z, _ and -.',
    reserved: 'The alias {alias} is reserved for the service itself: choose another.',
    'alias-taken': 'The alias {alias} is taken by another link: choose another.',
    'invalid-type': dateRule,
    'out-of-range': dateRule,
    duplicate: 'This field must not be given more than once.',
  } satisfies Record<FormFault, string>,
  /** About the whole form, by problem or code of a fault; the API's own detail for the others. */
  messages: {
    'rate-limited': 'Too many requests. Please wait {seconds} s, then retry.',
    'pool-empty': 'No generated code is left. Please retry in a moment, or choose an alias.',
    'store-unavailable':
      'The link could not be confirmed. Please retry in a moment; if the alias is taken then, it ' +
      'may be yours.',
    'body-too-large': 'The form is too large: at most 16 KiB are allowed.',
    'request-timeout': 'The form took too long to arrive. Please retry.',
    'malformed-form': 'The form is not encoded in UTF-8.',
    'unknown-field': 'The form has an unknown field. Please reload the page.',
    internal: 'The service failed unexpectedly. Please retry in a moment.',
  } satisfies Partial<Record<ProblemName | 'malformed-form' | 'unknown-field', string>>,
  /** What only the scripts show. */
  script: {
    submitting: 'Creating…',
    ready: 'Your short link is ready: {url}',
    copied: 'Copied',
    copiedStatus: 'The short link was copied.',
    selected: 'Selected',
    selectedStatus: 'The short link is selected: copy it with your keyboard.',
    notShared: 'The short link could not be shared. Please copy it instead.',
    noResponse:
      'No response arrived: the connection may be down. Please retry; a retry creates no second ' +
      'link.',
    unconfirmed:
      'The link could not be confirmed. Please retry in a moment; a retry creates no second link.',
    failed: 'The service responded with status {status}.',
    free: 'The alias {alias} is probably available.',
    suggested: 'Perhaps available: {alias}',
    expires: 'Until {instant}',
    expiresNever: 'The link never expires.',
    chooseDate:
      'Choose a date from tomorrow on: the link expires on that date, at the time of day at ' +
      'which you create it.',
    recentQr: 'QR code',
    recentExpires: 'Expires',
    recentExpired: 'Expired',
    /** Instead of the message with the seconds to wait. */
    retryAt: 'Too many requests. Please retry after {instant}.',
  },
  abuse: abuseEn,
  notFound: {
    title: 'Nothing here – Curtail',
    heading: 'There is nothing here',
    meaning:
      'No short link has this address. The link may have expired or been removed, or a character ' +
      'of the address is missing.',
    advice:
      'Short links are case-sensitive: please compare the address with the link that you received.',
  },
  blocked: {
    title: 'Blocked – Curtail',
    heading: 'This link is blocked',
    410: 'The operator of this service blocks the target of this link.',
    451: 'The operator of this service blocks the target of this link for legal reasons.',
  },
  problem: {
    eyebrow: 'Problem type',
    name: 'Name',
    status: 'Status',
    type: 'Type',
    document:
      'A document of this type has a `detail`, which describes the error, and a `request_id`, ' +
      'which identifies the request in the logs. Include the `request_id` when you report a ' +
      'problem.',
    all: 'All problem types',
  },
  problems: problemTypes as Readonly<Record<ProblemName, ProblemStrings>>,
}
