// The static files of src/web, read once at startup, and their paths for pages.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** One static file. */
export interface Asset {
  readonly bytes: Buffer
  readonly contentType: string
  /** Changes with the content. */
  readonly hash: string
}

const JS = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'

function read(name: string, contentType: string): Asset {
  const bytes = readFileSync(new URL(`../../web/${name}`, import.meta.url))
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 16)
  return { bytes, contentType, hash }
}

/** The files of `/assets/{name}`. */
export const assets: ReadonlyMap<string, Asset> = new Map([
  ['page.css', read('page.css', CSS)],
  ['form.css', read('form.css', CSS)],
  ['docs.css', read('docs.css', CSS)],
  ['page.js', read('page.js', JS)],
  ['form-alias.js', read('form-alias.js', JS)],
  ['recent.js', read('recent.js', JS)],
  ['copy.js', read('copy.js', JS)],
  ['docs.js', read('docs.js', JS)],
])

/** The file of `/favicon.ico`. */
export const favicon: Asset = read('favicon.ico', 'image/x-icon')

/** Path of an asset with its hash: browsers cache it permanently. */
export function assetPath(name: string): string {
  return `/assets/${name}?v=${assets.get(name)?.hash ?? ''}`
}
