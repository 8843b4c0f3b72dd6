// The frame of every page. No inline script or style: the Content-Security-Policy blocks both.
import { assetPath } from './assets.ts'
import { type Html, html } from './html.ts'
import { en, type Strings } from './strings/en.ts'

/** The content of one page. */
export interface PageContent {
  readonly title: string
  readonly main: Html
  /** The strings of the frame, in the language of `main`. @default English */
  readonly strings?: Strings
  /** The page's own style sheet, besides page.css. */
  readonly style?: 'form.css' | 'docs.css'
  /** The scripts of the page; it works if one of them does not load. */
  readonly scripts?: readonly Script[]
  /** What search engines and messengers show of the page. */
  readonly summary?: PageSummary
  /** Whether search engines must not index the page. */
  readonly unlisted?: boolean
}

type Script = 'page.js' | 'form-alias.js' | 'recent.js' | 'copy.js' | 'docs.js'

/** A page in one sentence, and its complete address. */
interface PageSummary {
  readonly description: string
  readonly url: string
}

const mark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
  <rect width="32" height="32" rx="8" fill="currentColor" />
  <path class="kept" d="M7 16h8" stroke-width="4.5" stroke-linecap="round" />
  <path class="cut" d="M21.5 7.5l-4.5 17" stroke-width="2.5" stroke-linecap="round" />
  <path class="removed" d="M23.5 16h2" stroke-width="4.5" stroke-linecap="round" />
</svg>`

/** Renders the complete page. */
export function renderLayout(content: PageContent): string {
  const { title, main, strings = en, style, scripts = [], summary, unlisted } = content
  const { skip, site, tagline, reference, reportAbuse } = strings.layout
  const page = html`<!doctype html>
    <html lang="${strings.language}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        ${unlisted === true && html`<meta name="robots" content="noindex" />`}
        <title>${title}</title>
        ${summary && renderSummary(title, summary)}
        <link rel="icon" href="/favicon.ico" sizes="any" />
        <link rel="stylesheet" href="${assetPath('page.css')}" />
        ${style && html`<link rel="stylesheet" href="${assetPath(style)}" />`}
        ${scripts.map((name) => html`<script type="module" src="${assetPath(name)}"></script>`)}
      </head>
      <body>
        <a class="skip" href="#main">${skip}</a>
        <header class="top">
          <a class="brand" href="/">${mark}<span>Curtail</span></a>
          <nav aria-label="${site}"><a href="/docs">API</a></nav>
        </header>
        <main id="main" tabindex="-1">${main}</main>
        <footer class="bottom">
          <p>${tagline}</p>
          <p>
            <a href="/abuse">${reportAbuse}</a> · <a href="/docs">${reference}</a> ·
            <a href="/openapi.json">OpenAPI</a>
          </p>
        </footer>
      </body>
    </html> `
  return page.markup
}

/** The description, and the Open Graph tags, which messengers show as a preview of a link. */
function renderSummary(title: string, { description, url }: PageSummary): Html {
  return html`<meta name="description" content="${description}" />
    <meta property="og:type" content="website" />
    <meta property="og:site_name" content="Curtail" />
    <meta property="og:title" content="${title}" />
    <meta property="og:description" content="${description}" />
    <meta property="og:url" content="${url}" />`
}
