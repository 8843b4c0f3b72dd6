// The `html` template: every value is escaped unless it is markup created by `html` itself.

/** Markup that is safe to send. Only `html` may create it: the constructor does not escape. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }
}

/** A value in a template; `undefined` and `false` render as nothing. */
export type HtmlValue = string | number | false | undefined | Html | readonly Html[]

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Creates markup. Values are allowed in text and in quoted attributes only. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const rendered = values.map((value, at) => markupOf(value) + (strings[at + 1] ?? ''))
  return new Html((strings[0] ?? '') + rendered.join(''))
}

function markupOf(value: HtmlValue): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Html) return value.markup
  if (typeof value === 'object') return value.map(({ markup }) => markup).join('')
  return String(value).replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

/** Renders a sentence: what is between backticks is code, which `code` may render. */
export function renderCode(
  sentence: string,
  code = (segment: string) => html`<code>${segment}</code>`,
): Html[] {
  return sentence.split('`').map((segment, at) => (at % 2 === 1 ? code(segment) : html`${segment}`))
}
