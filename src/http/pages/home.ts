// The home page, with the form that creates a link. It works without JavaScript; the scripts only
// avoid the reload, check the alias, and fill the elements that are rendered here.
import { html, type Html, renderCode } from './html.ts'
import { type FormView, renderForm, scriptStrings } from './home-form.ts'
import { renderLayout } from './layout.ts'
import type { Strings } from './strings/en.ts'
import { fill } from './strings/negotiate.ts'

/** The content of the page. */
export interface HomeView extends FormView {
  readonly created?: ShownLink
  /**
   * Whether creates require an API key, which a browser does not send. The page then has no form,
   * but still the links that the browser has created before.
   */
  readonly isKeyRequired?: boolean
}

/** A created link. */
export interface ShownLink {
  readonly shortUrl: string
  readonly longUrl: string
  /** RFC 3339; `null` = never expires. */
  readonly expiresAt: string | null
}

/** Renders the page. */
export function renderHomePage(view: HomeView): string {
  const { strings, created } = view
  const { title, faultyTitle, createdTitle, heading } = strings.home
  const isKeyRequired = view.isKeyRequired === true
  const lead = isKeyRequired ? strings.home.keyLead : strings.home.lead
  const isFaulty = view.message !== undefined || Object.keys(view.faults).length > 0
  return renderLayout({
    title: created ? createdTitle : isFaulty ? faultyTitle : title,
    style: 'form.css',
    scripts: [
      ...(isKeyRequired ? [] : (['page.js', 'form-alias.js'] as const)),
      'recent.js',
      'copy.js',
    ],
    summary: { description: lead, url: `${view.baseUrl}/` },
    strings,
    main: html`<section class="intro">
        <h1>${heading}</h1>
        <p>${lead}</p>
      </section>
      ${
        isKeyRequired
          ? renderKeyNotice(strings)
          : html`${renderResult(strings, created)} ${renderForm(view)}`
      }
      ${renderRecent(strings, isKeyRequired)}`,
  })
}

function renderKeyNotice({ home, layout }: Strings): Html {
  return html`<section class="card lone">
      <p>${renderCode(home.keyRequired)}</p>
      <p><a href="/docs">${layout.reference}</a></p>
    </section>
    <p class="visually-hidden" id="status" role="status"></p>`
}

function renderResult(strings: Strings, created: ShownLink | undefined): Html {
  const { heading, copy, share, target, expiry } = strings.result
  return html`<section
      class="card result"
      id="result"
      aria-labelledby="result-title"
      tabindex="-1"
      ${created ? html` autofocus` : html` hidden`}
    >
      <h2 id="result-title">${heading}</h2>
      <div class="short">
        <a id="short" href="${created?.shortUrl ?? '/'}"
          >${created && breakable(created.shortUrl)}</a
        >
        <button type="button" class="quiet copy" id="copy" hidden>${copy}</button>
        <button type="button" class="quiet" id="share" hidden>${share}</button>
      </div>
      <p class="target">${target} <span id="target">${created?.longUrl}</span></p>
      <p class="target">
        ${expiry} <span id="expiry">${created && renderExpiry(strings, created.expiresAt)}</span>
      </p>
      ${renderQr(strings, created)}
    </section>
    <p class="visually-hidden" id="status" role="status">
      ${created && fill(strings.script.ready, { url: created.shortUrl })}
    </p>`
}

/** A short link that may break before its code, but not within it. */
function breakable(shortUrl: string): Html {
  const codeAt = shortUrl.lastIndexOf('/') + 1
  return html`${shortUrl.slice(0, codeAt)}<wbr /><span>${shortUrl.slice(codeAt)}</span>`
}

/** page.js sets the path of the image: browsers load it only with a result. */
function renderQr({ result }: Strings, created: ShownLink | undefined): Html {
  const path = created && new URL(`${created.shortUrl}.svg`).pathname
  return html`<div class="qr">
    <img id="qr" ${path && html` src="${path}"`} alt="${result.qr}" width="144" height="144" />
    <a class="button quiet" id="qr-download" href="${path ?? '/'}" download>${result.download}</a>
  </div>`
}

/**
 * The recent links, which recent.js reads from the browser's storage. Without a form, this section
 * has the strings of the scripts.
 */
function renderRecent(strings: Strings, hasStrings: boolean): Html {
  const { home } = strings
  return html`<section
    class="card recent"
    id="recent"
    aria-labelledby="recent-title"
    ${hasStrings && html`data-strings="${JSON.stringify(scriptStrings(strings))}"`}
    hidden
  >
    <h2 id="recent-title">${home.recent}</h2>
    <p class="hint">${home.recentHint}</p>
    <ol id="recent-list"></ol>
    <button type="button" class="quiet" id="recent-clear" data-cleared="${home.cleared}">
      ${home.clear}
    </button>
  </section>`
}

/** Renders the expiry in UTC; page.js renders it in the time zone of the browser. */
function renderExpiry({ locale, result }: Strings, expiresAt: string | null): Html {
  if (expiresAt === null) return html`${result.never}`
  const instant = new Date(expiresAt).toLocaleString(locale, {
    dateStyle: 'long',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  return html`<time datetime="${expiresAt}">${instant} UTC</time>`
}
