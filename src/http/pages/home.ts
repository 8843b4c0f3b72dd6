// The home page, with the form that creates a link. It works without JavaScript; page.js only
// avoids the reload, and fills the elements that are rendered here.
import type { CreateBody } from '../create/create-request.ts'
import { html, type Html } from './html.ts'
import { renderLayout } from './layout.ts'

/** One field of the form: a member of the API's request body. */
export type FormField = keyof CreateBody

/** The content of the page. */
export interface HomeView {
  /** The start of every short link. */
  readonly baseUrl: string
  /** Values as entered. */
  readonly values: Readonly<Record<FormField, string>>
  /** Messages at their fields. */
  readonly faults: Readonly<Partial<Record<FormField, string>>>
  /** A message about the whole form. */
  readonly message?: string
  /** Another alias, if the one entered is taken. */
  readonly suggestion?: string
  readonly created?: ShownLink
  /** Whether creates require an API key, which a browser does not send: there is no form. */
  readonly isKeyRequired?: boolean
}

/** A created link. */
export interface ShownLink {
  readonly shortUrl: string
  readonly longUrl: string
  /** RFC 3339; `null` = never expires. */
  readonly expiresAt: string | null
}

/** What the form shows of a field. */
interface FieldView {
  /** The subject of messages about the field: the API's details have none. */
  readonly subject: string
  readonly label: Html
  readonly hint: string
  readonly attributes: Html
  /** Whether the API expects a number. */
  readonly isNumber?: true
}

/** A link without its scheme, such as `example.com/a`: a host name with a dot, then the rest. */
export const bareLink = /^(?:[^\s.\/:?#@]+\.)+\p{L}[^\s.\/:?#@]*\.?(?::\d+)?(?:[\/?#]|$)/u

/** The fields of the form: every member of the API's request body. */
export const formFields: Readonly<Record<FormField, FieldView>> = {
  long_url: {
    subject: 'The long link',
    label: html`Long link`,
    hint: 'It starts with http:// or https://; if both are missing, the form adds https://',
    attributes: html` type="url" inputmode="url" required placeholder="https://…"
    data-bare-link="${bareLink.source}"`,
  },
  custom_alias: {
    subject: 'The alias',
    label: html`Alias <span class="optional">optional</span>`,
    hint: 'Up to 10 letters, digits, - or _. If empty, the service chooses one.',
    attributes: html` type="text"`,
  },
  ttl_days: {
    subject: 'The number of days',
    label: html`Days until it expires <span class="optional">optional</span>`,
    hint: '1 to 3650. If empty, it never expires.',
    attributes: html` type="text" inputmode="numeric"`,
    isNumber: true,
  },
}
const [firstField, ...otherFields] = Object.keys(formFields) as [FormField, ...FormField[]]

const titles = {
  empty: 'Curtail – create a short link',
  faulty: 'No link created yet – Curtail',
  created: 'Your short link – Curtail',
}

/** Renders the page. */
export function renderHomePage(view: HomeView): string {
  const isFaulty = view.message !== undefined || Object.keys(view.faults).length > 0
  const state = view.created ? 'created' : isFaulty ? 'faulty' : 'empty'
  return renderLayout({
    title: titles[state],
    style: 'form.css',
    scripts: view.isKeyRequired === true ? [] : ['page.js', 'recent.js'],
    summary: {
      description: 'Paste a link and get a short one that always points to the same place.',
      url: `${view.baseUrl}/`,
    },
    main: html`<section class="intro">
        <h1>Create a short link</h1>
        <p>Paste a link and get a short one that always points to the same place.</p>
      </section>
      ${
        view.isKeyRequired === true
          ? renderKeyNotice()
          : html`${renderResult(view.created)} ${renderForm(view)} ${renderRecent()}`
      }`,
  })
}

function renderKeyNotice(): Html {
  return html`<section class="card">
    <p>
      This service creates links only for programs that send an API key in the header
      <code>X-API-Key</code>: see the <a href="/docs">API reference</a>. The operator of the service
      issues the keys.
    </p>
  </section>`
}

function renderResult(created: ShownLink | undefined): Html {
  return html`<section
      class="card result"
      id="result"
      aria-labelledby="result-title"
      tabindex="-1"
      ${created ? html` autofocus` : html` hidden`}
    >
      <h2 id="result-title">Your short link is ready</h2>
      <div class="short">
        <a id="short" href="${created?.shortUrl ?? '/'}"
          >${created && breakable(created.shortUrl)}</a
        >
        <button type="button" class="quiet" id="copy" hidden>Copy</button>
      </div>
      <p class="target">Points to <span id="target">${created?.longUrl}</span></p>
      <p class="target">
        Expires <span id="expiry">${created && renderExpiry(created.expiresAt)}</span>
      </p>
      ${renderQr(created)}
    </section>
    <p class="visually-hidden" id="status" role="status">
      ${created && html`Your short link is ready: ${created.shortUrl}`}
    </p>`
}

/** A short link that may break before its code, but not within it. */
function breakable(shortUrl: string): Html {
  const codeAt = shortUrl.lastIndexOf('/') + 1
  return html`${shortUrl.slice(0, codeAt)}<wbr /><span>${shortUrl.slice(codeAt)}</span>`
}

/** page.js sets the path of the image: browsers load it only with a result. */
function renderQr(created: ShownLink | undefined): Html {
  const path = created && new URL(`${created.shortUrl}.svg`).pathname
  return html`<div class="qr">
    <img
      id="qr"
      ${path && html` src="${path}"`}
      alt="QR code of the short link"
      width="144"
      height="144"
    />
    <a class="button quiet" id="qr-download" href="${path ?? '/'}" download>Download the QR code</a>
  </div>`
}

/** Filled by recent.js from this browser's storage. */
function renderRecent(): Html {
  return html`<section class="card recent" id="recent" aria-labelledby="recent-title" hidden>
    <h2 id="recent-title">Recent links of this browser</h2>
    <p class="hint">Stored in this browser only, at most 20.</p>
    <ol id="recent-list"></ol>
    <button type="button" class="quiet" id="recent-clear">Clear the list</button>
  </section>`
}

function renderExpiry(expiresAt: string | null): Html {
  if (expiresAt === null) return html`never`
  const inWords = new Date(expiresAt).toLocaleString('en-GB', {
    dateStyle: 'long',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  return html`<time datetime="${expiresAt}">${inWords} UTC</time>`
}

function renderForm(view: HomeView): Html {
  const firstFaulty = [firstField, ...otherFields].find((name) => view.faults[name] !== undefined)
  const field = (name: FormField) =>
    renderField(name, {
      value: view.values[name],
      fault: view.faults[name],
      ...(name === 'custom_alias' && {
        prefix: `${new URL(view.baseUrl).host}/`,
        suggestion: view.suggestion,
      }),
      isFirstFaulty: name === firstFaulty,
    })
  return html`<form class="card" id="create" method="post" action="/" novalidate autocomplete="off">
    <p class="message" id="message" role="alert">${view.message}</p>
    ${field(firstField)}
    <div class="pair">${otherFields.map(field)}</div>
    <button type="submit" id="submit">Create</button>
  </form>`
}

interface FieldState {
  readonly value: string
  readonly fault: string | undefined
  readonly isFirstFaulty: boolean
  /** What precedes the value in the short link. */
  readonly prefix?: string
  readonly suggestion?: string | undefined
}

function renderField(name: FormField, given: FieldState): Html {
  const { subject, label, hint, attributes } = formFields[name]
  const { value, fault, prefix, suggestion } = given
  const hasPrefix = prefix !== undefined
  const ids = [`${name}-fault`, `${name}-hint`, ...(hasPrefix ? ['prefix'] : [])]
  if (suggestion !== undefined) ids.push('suggestion') // hidden elements also describe a field
  const input = html`<input
    id="${name}"
    name="${name}"
    ${attributes}
    value="${value}"
    autocapitalize="none"
    autocorrect="off"
    spellcheck="false"
    aria-describedby="${ids.join(' ')}"
    ${fault !== undefined && html` aria-invalid="true"`}${given.isFirstFaulty && html` autofocus`}
  />`
  return html`<div class="field">
    <label for="${name}">${label}</label>
    ${
      hasPrefix
        ? html`<div class="prefixed"><span id="prefix">${prefix}</span>${input}</div>`
        : input
    }
    <p class="fault" id="${name}-fault" data-subject="${subject}">${fault}</p>
    <p class="hint" id="${name}-hint">${hint}</p>
    ${hasPrefix && renderSuggestion(suggestion)}
  </div>`
}

/** Without JavaScript it has no button: people type the alias. */
function renderSuggestion(alias: string | undefined): Html {
  return html`<p class="suggestion" id="suggestion" ${alias === undefined && html` hidden`}>
    Perhaps available: <code id="suggested">${alias}</code>
    <button type="button" class="quiet" id="suggestion-use" hidden>Use it</button>
  </p>`
}
