// Finds links by a scan of all links through the admin API. The API does not filter, because the
// cost of a page is then bounded by its number of links, however few of them match.
import type { Writable } from 'node:stream'
import { type ListedLink, scanLinks, type ScanOptions } from './scan-links.ts'
import { writeOutput } from './write-output.ts'

/** What to find, and how to print it. */
export interface FindOptions extends ScanOptions {
  readonly matches: (link: ListedLink) => boolean
  /** The line of a link, with its line break. */
  readonly render: (link: ListedLink) => string
  readonly output: Writable
  /** Called after each page with the number of links scanned so far. */
  readonly onPage: (links: number) => void
}

/** What was found. */
export interface Found {
  readonly scanned: number
  readonly matched: number
  /** When the newest match was created, in RFC 3339. */
  readonly lastCreatedAt: string | undefined
}

/** Prints the links that match, page by page. Throws OperatorError. */
export async function findLinks(options: FindOptions): Promise<Found> {
  const { matches, render, output, signal, onPage } = options
  let read = 0
  let matched = 0
  let lastCreatedAt: string | undefined
  const scanned = await scanLinks(options, async (links) => {
    const matching = links.filter(matches)
    if (matching.length > 0) await writeOutput(output, matching.map(render).join(''), signal)
    for (const { created_at: createdAt } of matching) {
      if (lastCreatedAt === undefined || createdAt > lastCreatedAt) lastCreatedAt = createdAt
    }
    matched += matching.length
    read += links.length
    onPage(read)
  })
  return { scanned, matched, lastCreatedAt }
}
