// The recent links of this browser: kept in its storage, shown below the form, and never sent. The
// page works without this file, and without storage. It has no form if links require an API key.

const STORAGE_KEY = 'curtail.recent-links'
const LINKS_MAX = 20

/**
 * `expiresAt` is RFC 3339, or `null` if the link never expires; earlier releases did not store it.
 * @typedef {{ shortUrl: string, longUrl: string, expiresAt?: string | null }} RecentLink
 */

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`Cannot start recent.js: the page has no element ${id}`)
  return found
}

const section = element('recent')
const list = element('recent-list')
const clear = element('recent-clear')
const statusLine = element('status')
const afterList = document.getElementById('long_url') ?? element('main')
const source = /** @type {HTMLElement | null} */ (document.querySelector('[data-strings]'))
const strings = JSON.parse(source?.dataset.strings ?? '')

document.addEventListener('link-created', (event) => {
  const { detail } = /** @type {CustomEvent<RecentLink>} */ (event)
  const others = readLinks().filter(({ shortUrl }) => shortUrl !== detail.shortUrl)
  const links = [detail, ...others].slice(0, LINKS_MAX)
  if (writeLinks(links)) showLinks(links)
})
// Another tab has created a link or cleared the list.
addEventListener('storage', () => {
  showLinks(readLinks())
})
clear.addEventListener('click', () => {
  writeLinks([])
  showLinks([])
  statusLine.textContent = clear.dataset.cleared ?? ''
  afterList.focus()
})
showLinks(readLinks())

/** The stored links, newest first; none if the storage is disabled or its content is not ours. */
function readLinks() {
  try {
    const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? '[]')
    return /** @type {RecentLink[]} */ (stored.filter(isLink).slice(0, LINKS_MAX))
  } catch {
    return []
  }
}

/** @param {Partial<Record<string, unknown>> | null} value */
function isLink(value) {
  const { shortUrl, longUrl } = value ?? {}
  if (typeof shortUrl !== 'string' || typeof longUrl !== 'string') return false
  return /^https?:\/\//.test(shortUrl)
}

/** Returns whether the storage has the links. @param {RecentLink[]} links */
function writeLinks(links) {
  try {
    if (links.length === 0) localStorage.removeItem(STORAGE_KEY)
    else localStorage.setItem(STORAGE_KEY, JSON.stringify(links))
    return true
  } catch {
    return false // disabled or full
  }
}

/** @param {RecentLink[]} links */
function showLinks(links) {
  list.replaceChildren(...links.map(renderLink))
  section.hidden = links.length === 0
}

/** @param {RecentLink} link */
function renderLink({ shortUrl, longUrl, expiresAt }) {
  const item = document.createElement('li')
  const short = document.createElement('a')
  const code = document.createElement('span')
  const codeAt = shortUrl.lastIndexOf('/') + 1
  short.href = shortUrl
  code.textContent = shortUrl.slice(codeAt)
  short.append(shortUrl.slice(0, codeAt), document.createElement('wbr'), code)
  const copy = document.createElement('button')
  copy.type = 'button'
  copy.className = 'copy quiet' // copy.js copies
  copy.textContent = strings.copy
  const qr = document.createElement('a')
  qr.className = 'button quiet'
  qr.href = `${shortUrl}.svg`
  qr.textContent = strings.recentQr
  const line = document.createElement('div')
  line.className = 'line'
  line.append(short, copy, qr)
  const details = [longUrl, expiryOf(expiresAt)].filter((sentence) => sentence !== '')
  item.append(line, ...details.map(renderDetail))
  return item
}

/** @param {string} sentence */
function renderDetail(sentence) {
  const detail = document.createElement('p')
  detail.className = 'target'
  detail.textContent = sentence
  return detail
}

/** In the time zone of the browser; empty if the link never expires. @param {unknown} expiresAt */
function expiryOf(expiresAt) {
  const atMs = typeof expiresAt === 'string' ? Date.parse(expiresAt) : Number.NaN
  if (Number.isNaN(atMs)) return ''
  const { locale, recentExpires, recentExpired } = strings
  const instant = new Date(atMs).toLocaleString(locale, {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  })
  return `${atMs > Date.now() ? recentExpires : recentExpired} ${instant}`
}
