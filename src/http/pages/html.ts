// The `html` template: every value is escaped unless it is markup made by `html` itself. There is
// no way around the escaping, and none is needed.

/** Markup that is safe to send. Only `html` makes it. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }
}

/** What may stand in a template; `undefined` and `false` leave nothing. */
export type HtmlValue = string | number | false | undefined | Html | readonly Html[]

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Makes markup. Values may stand in text and in quoted attributes, nowhere else. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const written = values.map((value, at) => markupOf(value) + (parts[at + 1] ?? ''))
  return new Html((parts[0] ?? '') + written.join(''))
}

function markupOf(value: HtmlValue): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Html) return value.markup
  if (typeof value === 'object') return value.map(({ markup }) => markup).join('')
  return String(value).replace(/[&<>"']/g, (character) => entities[character] ?? '')
}
