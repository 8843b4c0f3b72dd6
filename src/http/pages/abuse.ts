// The page on which people report abuse of a link. It has no script: the form works without one.
import {
  CONTACT_LENGTH_MAX,
  DETAILS_LENGTH_MAX,
  type ReportReason,
  reportReasons,
} from '../../links/report.ts'
import { html, type Html } from './html.ts'
import { renderLayout } from './layout.ts'

/** The fields of the form. */
export const abuseFields = ['link', 'reason', 'details', 'contact'] as const

/** One field of the form. */
export type AbuseField = (typeof abuseFields)[number]

/** The content of the page. */
export interface AbuseView {
  /** Values as entered. */
  readonly values: Readonly<Record<AbuseField, string>>
  /** Messages at their fields. */
  readonly faults: Readonly<Partial<Record<AbuseField, string>>>
  /** A message about the whole form. */
  readonly message?: string
}

/** The reasons as the form shows them. */
const reasonLabels: Readonly<Record<ReportReason, string>> = {
  phishing: 'Phishing: it imitates another site',
  malware: 'Malware: it distributes harmful software',
  spam: 'Spam: it is advertised in unwanted messages',
  illegal: 'Illegal content',
  other: 'Other',
}

const optional = html` <span class="optional">optional</span>`

/** Renders the page with the form. */
export function renderAbusePage(view: AbuseView): string {
  const isFaulty = view.message !== undefined || Object.keys(view.faults).length > 0
  return renderLayout({
    title: isFaulty ? 'Not reported yet – Curtail' : 'Report abuse – Curtail',
    style: 'form.css',
    unlisted: true,
    main: html`<section class="intro">
        <h1>Report abuse</h1>
        <p>Report a short link that points to something harmful. An operator reads each report.</p>
      </section>
      ${renderForm(view)}`,
  })
}

/** Renders the page that confirms a report. */
export function renderReportedPage(id: string): string {
  return renderLayout({
    title: 'Reported – Curtail',
    unlisted: true,
    main: html`<section class="card lone" role="status">
      <h1>Thank you for your report</h1>
      <p>Its number is <code id="report">${id}</code>. Keep it for questions about the report.</p>
      <p>An operator of this service reads it, and disables the link if it is harmful.</p>
      <p><a href="/abuse">Report another link</a></p>
    </section>`,
  })
}

function renderForm({ values, faults, message }: AbuseView): Html {
  const firstFaulty = abuseFields.find((name) => faults[name] !== undefined)
  /** The attributes that all fields have. */
  const common = (name: AbuseField) => {
    const invalid = faults[name] !== undefined && html` aria-invalid="true"`
    const focus = name === firstFaulty && html` autofocus`
    return html`id="${name}" name="${name}" aria-describedby="${name}-fault ${name}-hint" ${invalid}
    ${focus}`
  }
  const field = (name: AbuseField, shown: { label: Html; input: Html; hint: string }) =>
    html`<div class="field">
      <label for="${name}">${shown.label}</label>
      ${shown.input}
      <p class="fault" id="${name}-fault">${faults[name]}</p>
      <p class="hint" id="${name}-hint">${shown.hint}</p>
    </div>`
  return html`<form class="card" method="post" action="/abuse" novalidate autocomplete="off">
    <p class="message" id="message" role="alert">${message}</p>
    ${field('link', {
      label: html`Short link`,
      input: html`<input
        ${common('link')}
        type="text"
        inputmode="url"
        required
        value="${values.link}"
        autocapitalize="none"
        autocorrect="off"
        spellcheck="false"
      />`,
      hint: 'The complete short link, or only the code at its end.',
    })}
    ${field('reason', {
      label: html`Reason`,
      input: html`<select ${common('reason')} required>
        <option value="">Choose a reason</option>
        ${reportReasons.map(
          (reason) =>
            html`<option value="${reason}" ${values.reason === reason && html` selected`}>
              ${reasonLabels[reason]}
            </option>`,
        )}
      </select>`,
      hint: 'What the link is used for.',
    })}
    ${field('details', {
      label: html`Details${optional}`,
      // The parser of HTML removes the first line break.
      input: html`<textarea ${common('details')} rows="6" maxlength="${DETAILS_LENGTH_MAX}">
${values.details}</textarea>`,
      hint: `How you received the link, or what it shows: up to ${DETAILS_LENGTH_MAX} characters.`,
    })}
    ${field('contact', {
      label: html`Your e-mail address${optional}`,
      input: html`<input
        ${common('contact')}
        type="email"
        maxlength="${CONTACT_LENGTH_MAX}"
        value="${values.contact}"
        autocapitalize="none"
        spellcheck="false"
      />`,
      hint: 'Only for questions of the operator. It is deleted with the report after 90 days.',
    })}
    <button type="submit" id="submit">Report the link</button>
  </form>`
}
