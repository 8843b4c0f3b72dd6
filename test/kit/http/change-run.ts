// Links of which every third one is selected, and runs that change them, for tests of such runs.
import { PassThrough } from 'node:stream'
import type { ChangeOptions } from '../../../src/clients/change-link.ts'
import { type ApiFault, apiLink, type LinksApi, startLinksApi } from './links-api.ts'

/** The number of links. */
export const LINKS = 1200
/** The codes, in the order of the API. */
export const codes = Array.from({ length: LINKS }, (_, i) => `${(i * 7) % 10}-${i}`)
/** Every third link has the creator that the tests select. */
export const isSelected = (code: string) => Number(code.split('-')[1]) % 3 === 0
/** The codes of the selected links. */
export const selected = codes.filter(isSelected)
/** Selects them. */
export const matches = (link: { creator_id: string | null }) => link.creator_id === '7'

/** Starts an API with the links. */
export function startSelectable(fault?: ApiFault): Promise<LinksApi> {
  const links = codes.map((code) => apiLink(code, { creator_id: isSelected(code) ? '7' : null }))
  return startLinksApi(links, fault)
}

/** Options without a wait between changes, and what the run reports. */
export function changeOptionsFor({ url }: { url: string }, given: Partial<ChangeOptions> = {}) {
  const output = new PassThrough()
  let printed = ''
  output.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const pauses: number[] = []
  const retries: string[] = []
  const options: ChangeOptions = {
    target: { url, token: undefined, operator: 'ann' },
    verb: 'disable',
    isDryRun: false,
    linksPerSecond: 1_000_000,
    output,
    counts: { scanned: 0, changed: 0, already: 0, skipped: 0, notFound: 0, failed: 0 },
    signal: new AbortController().signal,
    onProgress: () => undefined,
    onRetry: (cause) => retries.push(cause.message),
    pause(ms) {
      pauses.push(ms)
      return Promise.resolve()
    },
    ...given,
  }
  const printedCodes = () =>
    printed
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { short_code: string }).short_code)
  return { options, pauses, retries, printedCodes }
}
