// The page on which people report abuse of a link. It has no script: the form works without one.
import { CONTACT_LENGTH_MAX, DETAILS_LENGTH_MAX, reportReasons } from '../../links/report.ts'
import { html, type Html, renderCode } from './html.ts'
import { renderLayout } from './layout.ts'
import type { Strings } from './strings/en.ts'
import { fill } from './strings/negotiate.ts'

/** The fields of the form. */
export const abuseFields = ['link', 'reason', 'details', 'contact'] as const

/** One field of the form. */
export type AbuseField = (typeof abuseFields)[number]

/** The content of the page. */
export interface AbuseView {
  readonly strings: Strings
  /** Values as entered. */
  readonly values: Readonly<Record<AbuseField, string>>
  /** Messages at their fields. */
  readonly faults: Readonly<Partial<Record<AbuseField, string>>>
  /** A message about the whole form. */
  readonly message?: string
}

/** Renders the page with the form. */
export function renderAbusePage(view: AbuseView): string {
  const { strings } = view
  const { title, faultyTitle, heading, lead } = strings.abuse
  const isFaulty = view.message !== undefined || Object.keys(view.faults).length > 0
  return renderLayout({
    title: isFaulty ? faultyTitle : title,
    style: 'form.css',
    unlisted: true,
    strings,
    main: html`<section class="intro">
        <h1>${heading}</h1>
        <p>${lead}</p>
      </section>
      ${renderForm(view)}`,
  })
}

/** Renders the page that confirms a report. */
export function renderReportedPage(id: string, strings: Strings): string {
  const { reportedTitle, reported, number, next, another } = strings.abuse
  const renderId = (code: string) => html`<code id="report">${code}</code>`
  return renderLayout({
    title: reportedTitle,
    unlisted: true,
    strings,
    main: html`<section class="card lone" role="status">
      <h1>${reported}</h1>
      <p>${renderCode(fill(number, { id }), renderId)}</p>
      <p>${next}</p>
      <p><a href="/abuse">${another}</a></p>
    </section>`,
  })
}

function renderForm({ strings, values, faults, message }: AbuseView): Html {
  const { abuse } = strings
  const optional = html` <span class="optional">${strings.home.optional}</span>`
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
      label: html`${abuse.link}`,
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
      hint: abuse.linkHint,
    })}
    ${field('reason', {
      label: html`${abuse.reason}`,
      input: html`<select ${common('reason')} required>
        <option value="">${abuse.choose}</option>
        ${reportReasons.map(
          (reason) =>
            html`<option value="${reason}" ${values.reason === reason && html` selected`}>
              ${abuse.reasons[reason]}
            </option>`,
        )}
      </select>`,
      hint: abuse.reasonHint,
    })}
    ${field('details', {
      label: html`${abuse.details}${optional}`,
      // HTML parsers remove the first line break.
      input: html`<textarea ${common('details')} rows="6" maxlength="${DETAILS_LENGTH_MAX}">
${values.details}</textarea>`,
      hint: fill(abuse.detailsHint, { max: String(DETAILS_LENGTH_MAX) }),
    })}
    ${field('contact', {
      label: html`${abuse.contact}${optional}`,
      input: html`<input
        ${common('contact')}
        type="email"
        maxlength="${CONTACT_LENGTH_MAX}"
        value="${values.contact}"
        autocapitalize="none"
        spellcheck="false"
      />`,
      hint: abuse.contactHint,
    })}
    <button type="submit" id="submit">${abuse.submit}</button>
  </form>`
}
