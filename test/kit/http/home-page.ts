// What a person does on the home page, and what it shows then.
import type { Page } from 'playwright-core'

/** Values by field; the others keep theirs. */
export type Input = Readonly<Partial<Record<InputName, string>>>

/** The controls, in the order of the page: the date is hidden until `ttl_days` is `date`. */
type InputName = 'long_url' | 'custom_alias' | 'ttl_days' | 'expires_on'

/** Fills the form and submits it. */
export async function submit(page: Page, input: Input): Promise<void> {
  for (const [name, value] of Object.entries(input)) {
    if (name === 'ttl_days') await page.selectOption('#ttl_days', value)
    else await page.fill(`#${name}`, value)
  }
  await page.click('#submit')
}

/** Waits until the page shows the created link; returns its URL. */
export async function shortUrlOn(page: Page): Promise<string> {
  await page.waitForSelector('#result:not([hidden])')
  return (await page.textContent('#short')) ?? ''
}

/** The id of the focused element. */
export function focused(page: Page): Promise<string | undefined> {
  return page.evaluate<string | undefined>('document.activeElement?.id')
}
