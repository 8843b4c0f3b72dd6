// The form of the home page. Its data attributes hold the rules and the strings of the scripts.
import type { CreateBody } from '../create/create-request.ts'
import { codeSyntax } from '../../links/alias.ts'
import { reservedWords } from '../../links/reserved.ts'
import { html, type Html } from './html.ts'
import type { Strings } from './strings/en.ts'

/**
 * A control of the form: one for each member of the API's request body, and `expires_on`: the date
 * of the expiry, which applies if `ttl_days` has the value ON_DATE.
 */
export type FormControl = keyof CreateBody | 'expires_on'

/** The content of the form. */
export interface FormView {
  readonly strings: Strings
  /** The start of every short link. */
  readonly baseUrl: string
  /** Values as entered. */
  readonly values: Readonly<Record<FormControl, string>>
  /** Messages at their controls. */
  readonly faults: Readonly<Partial<Record<FormControl, string>>>
  /** A message about the whole form. */
  readonly message?: string
  /** Another alias, if the one entered is taken. */
  readonly suggestion?: string
}

/** The value of `ttl_days` if the link expires on a date. */
export const ON_DATE = 'date'

/** A link without its scheme, such as `example.com/a`: a host name with a dot, then the rest. */
export const bareLink = /^(?:[^\s.\/:?#@]+\.)+\p{L}[^\s.\/:?#@]*\.?(?::\d+)?(?:[\/?#]|$)/u

/** The lifetimes to choose from, as values of `ttl_days`. */
const lifetimes = ['', 1, 7, 30, 365, ON_DATE] as const

/** Controls in the order of the page. */
const controls: readonly FormControl[] = ['long_url', 'custom_alias', 'ttl_days', 'expires_on']

/** Renders the form. */
export function renderForm(view: FormView): Html {
  const { home } = view.strings
  return html`<form
    class="card"
    id="create"
    method="post"
    action="/"
    novalidate
    autocomplete="off"
    data-strings="${JSON.stringify(scriptStrings(view.strings))}"
  >
    <p class="message" id="message" role="alert">${view.message}</p>
    <div class="field">
      <label for="long_url">${home.longUrl}</label>
      <input
        ${common(view, 'long_url', 'long_url-hint')}
        type="url"
        inputmode="url"
        required
        placeholder="https://…"
        value="${view.values.long_url}"
        data-bare-link="${bareLink.source}"
      />
      ${fault(view, 'long_url')}
      <p class="hint" id="long_url-hint">${home.longUrlHint}</p>
    </div>
    <div class="pair">${renderAlias(view)} ${renderExpiry(view)}</div>
    <button type="submit" id="submit">${home.submit}</button>
  </form>`
}

function renderAlias(view: FormView): Html {
  const { home } = view.strings
  const { suggestion } = view
  // aria-describedby includes hidden elements: it names the suggestion only if one exists.
  const described = `custom_alias-hint prefix${suggestion === undefined ? '' : ' suggestion'}`
  return html`<div class="field">
    <label for="custom_alias">${home.alias} <span class="optional">${home.optional}</span></label>
    <div class="prefixed">
      <span id="prefix">${new URL(view.baseUrl).host}/</span>
      <input
        ${common(view, 'custom_alias', described)}
        type="text"
        value="${view.values.custom_alias}"
        data-syntax="${codeSyntax.source}"
        data-reserved="${reservedWords.source}"
      />
    </div>
    ${fault(view, 'custom_alias')}
    <p class="hint" id="custom_alias-hint">${home.aliasHint}</p>
    <p class="free" id="free"></p>
    <p class="suggestion" id="suggestion" ${suggestion === undefined && html` hidden`}>
      ${home.suggestion} <code id="suggested">${suggestion}</code>
      <button type="button" class="quiet" id="suggestion-use" hidden>${home.useSuggestion}</button>
    </p>
  </div>`
}

/** form.css hides the date unless ON_DATE is selected. page.js replaces the hint. */
function renderExpiry(view: FormView): Html {
  const { home } = view.strings
  const option = (days: (typeof lifetimes)[number]) => {
    const isSelected = view.values.ttl_days === String(days)
    return html`<option value="${days}" ${isSelected && html` selected`}>
      ${home.days[days]}
    </option>`
  }
  return html`<div class="field expiry">
    <label for="ttl_days">${home.expiry}</label>
    <select ${common(view, 'ttl_days', 'expiry-hint')}>
      ${lifetimes.map(option)}
    </select>
    ${fault(view, 'ttl_days')}
    <input
      ${common(view, 'expires_on', 'expiry-hint')}
      type="date"
      aria-label="${home.date}"
      value="${view.values.expires_on}"
    />
    ${fault(view, 'expires_on')}
    <p class="hint" id="expiry-hint">${home.expiryHint}</p>
  </div>`
}

/** The attributes of every control. */
function common(view: FormView, name: FormControl, hintIds: string): Html {
  const isFaulty = view.faults[name] !== undefined
  const isFirst = isFaulty && controls.find((one) => view.faults[one] !== undefined) === name
  return html`id="${name}" name="${name}" autocapitalize="none" autocorrect="off" spellcheck="false"
  aria-describedby="${name}-fault ${hintIds}" ${isFaulty && html` aria-invalid="true"`}
  ${isFirst && html` autofocus`}`
}

function fault(view: FormView, name: FormControl): Html {
  return html`<p class="fault" id="${name}-fault">${view.faults[name]}</p>`
}

/** The strings of the scripts, which an element of the page has as `data-strings`. */
export function scriptStrings({ locale, home, result, faults, messages, script }: Strings) {
  const { submit } = home
  const { copy, never } = result
  const { retryAt, ...others } = script
  const shown = { ...messages, 'rate-limited': retryAt }
  return { locale, submit, copy, never, faults, messages: shown, ...others }
}
