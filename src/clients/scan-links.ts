// Handles all links, page by page: one page is in memory until it is handled. The error of a scan
// that stops contains the code after which another scan continues it.
import type * as z from 'zod'
import { OperatorError } from '../process/role.ts'
import type { linkShape } from './link-shape.ts'
import { type PageOptions, readPages } from './read-pages.ts'
import { OutputError } from './write-output.ts'

/** A link in the format of the admin API. */
export type ListedLink = z.output<typeof linkShape>

/** How to scan. */
export interface ScanOptions extends PageOptions {
  /** The command, as its errors name it. */
  readonly name: string
}

/**
 * Handles a page; calls `onHandled` with a number n once the first n of its links are handled.
 */
export type PageHandler = (
  links: readonly ListedLink[],
  onHandled: (links: number) => void,
) => Promise<void>

const LAST_LINE = 'CODE, the short_code of the last complete line'

/** Scans all links; resolves to their number. Throws OperatorError. */
export async function scanLinks(options: ScanOptions, handle: PageHandler): Promise<number> {
  let scanned = 0
  let { after } = options
  try {
    for await (const { links } of readPages(options)) {
      const scannedBefore = scanned
      const onHandled = (count: number) => {
        scanned = scannedBefore + count
        after = links[count - 1]?.short_code ?? after
      }
      await handle(links, onHandled)
      onHandled(links.length)
    }
    return scanned
  } catch (error) {
    const isOutput = error instanceof OutputError
    if (!(error instanceof OperatorError) || (scanned === 0 && !isOutput)) throw error
    const from = isOutput ? LAST_LINE : after
    const stopped = `${options.name} stopped after ${scanned} links`
    throw new OperatorError(`${stopped}: ${error.message}; continue with --after=${from}`)
  }
}
