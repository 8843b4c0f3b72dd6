// The strings of the page on which people report abuse, in English.
import type { ReportReason } from '../../../links/report.ts'

/** A report of abuse: its form, its faults and its confirmation. */
export const abuseEn = {
  title: 'Report abuse – Curtail',
  faultyTitle: 'Not reported yet – Curtail',
  reportedTitle: 'Reported – Curtail',
  heading: 'Report abuse',
  lead: 'Report a short link that points to something harmful. An operator reads each report.',
  link: 'Short link',
  linkHint: 'The complete short link, or only the code at its end.',
  reason: 'Reason',
  reasonHint: 'What the link is used for.',
  choose: 'Choose a reason',
  reasons: {
    phishing: 'Phishing: it imitates another site',
    malware: 'Malware: it distributes harmful software',
    spam: 'Spam: it is advertised in unwanted messages',
    illegal: 'Illegal content',
    other: 'Other',
  } satisfies Record<ReportReason, string>,
  details: 'Details',
  detailsHint: 'How you received the link, or what it shows: up to {max} characters.',
  contact: 'Your e-mail address',
  contactHint: 'Only for questions of the operator. It is deleted with the report after 90 days.',
  submit: 'Report the link',
  /** Shown after the report is stored. */
  reported: 'Thank you for your report',
  number: 'Its number is `{id}`. Keep it for questions about the report.',
  next: 'An operator of this service reads it, and disables the link if it is harmful.',
  another: 'Report another link',
  /** Sentences at a field. */
  faults: {
    linkRequired:
      'The link is required: a short link of {hosts}, or its code: 1 to 10 letters, digits, ' +
      '- or _.',
    link: 'The link must be a short link of {hosts}, or its code: 1 to 10 letters, digits, - or _.',
    reason: 'Choose one of the reasons.',
    detailsLength: 'The details must have at most {max} characters: they have {length}.',
    detailsControl: 'The details must not contain control characters.',
    contact: 'Enter an e-mail address of at most {max} characters, or leave the field empty.',
  },
  /** About the whole form. */
  messages: {
    fields: 'The form must have the fields link, reason, details and contact, each once.',
    anotherSite: 'Another site sent this form: check it, then send it from this page.',
    full:
      'This service stores at most {max} reports per day (UTC), and this limit is reached. The ' +
      'report was not stored: please retry tomorrow.',
    busy: 'Too many reports arrive at this time, and this one was not stored: please retry.',
    'not-done': 'The database is unavailable, and the report was not stored: please retry.',
    unknown:
      'The database did not respond, and it is unknown whether the report was stored: please ' +
      'retry.',
  },
}
