// Exports all links through the admin API: page by page, at a bounded rate, as fast as the output
// accepts them. One page is in memory until it is written. The error of a failed export contains
// the code after which another export continues it.
import type { Writable } from 'node:stream'
import type { PageOptions } from './read-pages.ts'
import { type ListedLink, scanLinks } from './scan-links.ts'
import { writeOutput } from './write-output.ts'

/** How to export; `after` is the last exported code of an earlier export. */
export interface ExportOptions extends PageOptions {
  readonly output: Writable
  /** Called after each page with the number of links exported so far. */
  readonly onPage: (links: number) => void
}

/** Exports all links, one JSON object per line; resolves to their number. Throws OperatorError. */
export function exportLinks(options: ExportOptions): Promise<number> {
  const { output, signal, onPage } = options
  let exported = 0
  return scanLinks({ ...options, name: 'export' }, async (links) => {
    const lines = links.map(renderLine)
    await writeOutput(output, lines.join(''), signal)
    exported += links.length
    onPage(exported)
  })
}

/** Omits `target_blocked`: the list of blocked targets belongs to the service. */
function renderLine(link: ListedLink): string {
  return `${JSON.stringify({ ...link, target_blocked: undefined })}\n`
}
