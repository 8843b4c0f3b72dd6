// The language of a page: the one that Accept-Language prefers, or English.
import type { IncomingMessage } from 'node:http'
import Negotiator from 'negotiator'
import { de } from './de.ts'
import { en, type Strings } from './en.ts'

const languages: ReadonlyMap<string, Strings> = new Map([en, de].map((one) => [one.language, one]))
const names = [...languages.keys()]

/** The strings for the client's language. */
export function stringsFor(req: IncomingMessage): Strings {
  return languages.get(new Negotiator(req).language(names) ?? '') ?? en
}

/** Renders a page once for each language; the result selects the page for a client. */
export function inEachLanguage<T>(render: (strings: Strings) => T): (req: IncomingMessage) => T {
  const rendered = new Map([...languages.values()].map((strings) => [strings, render(strings)]))
  return (req) => rendered.get(stringsFor(req)) ?? render(en)
}

/** Replaces placeholders in braces. */
export function fill(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (placeholder, name: string) => values[name] ?? placeholder)
}
