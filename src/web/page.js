// Avoids the reload of the home page: sends the form to the API, shows the result in the elements
// that the server rendered, and shares the short link. The form also works without this file. It
// sends requests only to /v1/urls and /{code}.svg of its own origin.

/** The deadline of a response; the server's own deadline is earlier. */
const RESPONSE_MS_MAX = 15_000
const DAY_MS = 86_400_000
const DAYS_MAX = 3650
/** After a wait of at least this long, the time of a retry is shown with its date. */
const DATED_SECONDS_MIN = 43_200

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`Cannot start page.js: the page has no element ${id}`)
  return found
}

// Every element is found before any is changed: on a page of another release, during a rollout,
// this file throws here, and the form works as without it.

const form = /** @type {HTMLFormElement} */ (element('create'))
const submit = /** @type {HTMLButtonElement} */ (element('submit'))
const share = /** @type {HTMLButtonElement} */ (element('share'))
const short = /** @type {HTMLAnchorElement} */ (element('short'))
const qr = /** @type {HTMLImageElement} */ (element('qr'))
const qrDownload = /** @type {HTMLAnchorElement} */ (element('qr-download'))
const alias = /** @type {HTMLInputElement} */ (element('custom_alias'))
const lifetime = /** @type {HTMLSelectElement} */ (element('ttl_days'))
const date = /** @type {HTMLInputElement} */ (element('expires_on'))
const urlInput = element('long_url')
const result = element('result')
const target = element('target')
const expiry = element('expiry')
const expiryHint = element('expiry-hint')
const message = element('message')
const statusLine = element('status')

const strings = JSON.parse(form.dataset.strings ?? '')
const inputs = /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll('input, select')])
const faultPlaces = new Map(inputs.map((input) => [input, element(`${input.id}-fault`)]))

let isPending = false
/** The body sent last and its Idempotency-Key, until it has succeeded. */
let attempt = { body: '', key: '' }

boundDate()
showLifetime()
for (const input of inputs) input.addEventListener('input', () => showFault(input, ''))
lifetime.addEventListener('input', () => {
  showFault(date, '')
  boundDate()
  showLifetime()
})
date.addEventListener('input', showLifetime)
share.addEventListener('click', () => void shareLink())
share.hidden = typeof navigator.share !== 'function'
form.addEventListener('submit', (event) => {
  event.preventDefault()
  if (!isPending) void create()
})

async function create() {
  const body = bodyOf(form)
  const sent = Object.fromEntries(inputs.map(({ id, value }) => [id, value]))
  if (attempt.body !== body) attempt = { body, key: newKey() }
  setPending(true)
  const outcome = await send(attempt, sent)
  setPending(false)
  if ('created' in outcome) {
    attempt = { body: '', key: '' }
    showLink({ ...outcome.created, longUrl: JSON.parse(body).long_url })
  } else {
    result.hidden = true
    statusLine.textContent = '' // it may announce the previous link
    showProblem(outcome, sent)
  }
}

/**
 * The body for the API; empty fields are absent. Forgives what people paste or omit.
 * @param {HTMLFormElement} from
 */
function bodyOf(from) {
  const trimmed = [...new FormData(from)].map(([name, value]) => [name, String(value).trim()])
  const filled = trimmed.filter(([name, value]) => value !== '' && name !== date.id)
  const { ttl_days: value, ...rest } = Object.fromEntries(filled)
  const bareLink = new RegExp(urlInput.dataset.bareLink ?? '$^', 'u')
  if (bareLink.test(rest.long_url)) rest.long_url = `https://${rest.long_url}`
  // Without a date, the value is sent as a string, which the service rejects; NaN would be null.
  const days = daysChosen()
  return JSON.stringify({ ...rest, ttl_days: Number.isNaN(days) ? value : days })
}

/** The chosen lifetime; `undefined`: the link never expires; NaN: no date is chosen. */
function daysChosen() {
  if (lifetime.value === '') return undefined
  if (lifetime.value !== 'date') return Number(lifetime.value)
  // The fewest days after which the date has started in the time zone of the browser.
  return Math.ceil((Date.parse(`${date.value}T00:00`) - Date.now()) / DAY_MS)
}

/** Sets the bounds of the date. Not called while a date is typed: that would clear it. */
function boundDate() {
  date.min = dayAfter(1)
  date.max = dayAfter(DAYS_MAX)
}

/** Shows when a link that is created now would expire. */
function showLifetime() {
  const days = daysChosen()
  const isValid = days !== undefined && days >= 1 && days <= DAYS_MAX
  const instant = isValid ? inWords(new Date(Date.now() + days * DAY_MS)) : ''
  const { expires, expiresNever, chooseDate, faults } = strings
  expiryHint.textContent =
    days === undefined
      ? expiresNever
      : isValid
        ? fill(expires, { instant })
        : Number.isNaN(days)
          ? chooseDate
          : faults['out-of-range']
}

/** The date after some days, as the value of a date field. @param {number} days */
function dayAfter(days) {
  const at = new Date(Date.now() + days * DAY_MS)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 10)
}

/** A unique key. `randomUUID` is missing if the page was loaded over plain HTTP. */
function newKey() {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** @typedef {{ shortUrl: string, expiresAt: string | null }} Created */
/** @typedef {{ faults: Map<string, string>, isTaken?: boolean }} Faults */

/**
 * The API's response: the link, or sentences by field ('' = the whole form).
 * @param {{ body: string, key: string }} request
 * @param {Record<string, string>} sent The values of the form, by id.
 * @returns {Promise<{ created: Created } | Faults>}
 */
async function send({ body, key }, sent) {
  try {
    const response = await fetch('/v1/urls', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
      body,
      signal: AbortSignal.timeout(RESPONSE_MS_MAX),
    })
    const json = (await response.json().catch(() => null)) ?? {}
    if (typeof json.short_url !== 'string') return faultsOf(response, json, sent)
    return { created: { shortUrl: json.short_url, expiresAt: json.expires_at } }
  } catch {
    return { faults: new Map([['', strings.noResponse]]) }
  }
}

/**
 * The sentences of a problem; the response may also come from a proxy, with any content.
 * @param {Response} response
 * @param {Partial<Record<string, unknown>>} problem
 * @param {Record<string, string>} sent
 * @returns {Faults}
 */
function faultsOf({ status, headers }, { type, detail, errors }, sent) {
  const name = status === 429 ? 'rate-limited' : (String(type).split('/').at(-1) ?? '')
  const values = { alias: sent[alias.id].trim(), instant: instantAfter(headers) }
  const faults = new Map()
  const listed = Array.isArray(errors) ? errors.filter(Boolean) : []
  for (const { pointer, code, detail } of listed) {
    const field = String(pointer).slice(1)
    const id = field === lifetime.id && sent[field] === 'date' ? date.id : field
    const isShown = inputs.some((input) => input.id === id) && !faults.has(id)
    if (isShown) faults.set(id, fill(strings.faults[code] ?? String(detail), values))
  }
  if (name === 'alias-taken') faults.set(alias.id, fill(strings.faults[name], values))
  if (name === 'target-blocked') faults.set('long_url', strings.faults[name])
  if (faults.size === 0) {
    const isUnconfirmed = name === 'store-unavailable' || name === 'unavailable'
    const own = strings.messages[listed[0]?.code] ?? strings.messages[name]
    const failed = fill(strings.failed, { status: String(status) })
    const other = own ?? (typeof detail === 'string' ? detail : failed)
    faults.set('', fill(isUnconfirmed ? strings.unconfirmed : other, values))
  }
  return { faults, isTaken: name === 'alias-taken' }
}

/**
 * The time at which a retry is admitted: a number of seconds would not stay true.
 * @param {Headers} headers
 */
function instantAfter(headers) {
  const seconds = Number(headers.get('Retry-After')) || 1
  const instant = new Date(Math.ceil(Date.now() / 1000 + seconds) * 1000)
  const dateStyle = seconds < DATED_SECONDS_MIN ? undefined : 'medium'
  return instant.toLocaleString(strings.locale, { dateStyle, timeStyle: 'medium' })
}

/** Replaces placeholders in braces. @param {string} template @param {Record<string, string>} by */
function fill(template, by) {
  return template.replace(/\{(\w+)\}/g, (placeholder, name) => by[name] ?? placeholder)
}

/**
 * Shows each sentence at its field, or above the form if the field has another value meanwhile.
 * @param {Faults} outcome @param {Record<string, string>} sent
 */
function showProblem({ faults, isTaken }, sent) {
  const unchanged = inputs.filter(({ id, value }) => value === sent[id])
  for (const input of unchanged) showFault(input, faults.get(input.id) ?? '')
  const others = [...faults].filter(([name]) => !unchanged.some(({ id }) => id === name))
  message.textContent = others.map(([, sentence]) => sentence).join(' ')
  // For form-alias.js, which suggests another; the page works without it.
  if (isTaken && unchanged.includes(alias)) document.dispatchEvent(new CustomEvent('alias-taken'))
  unchanged.find(({ id }) => faults.has(id))?.focus()
}

/** @param {HTMLInputElement} input @param {string} sentence */
function showFault(input, sentence) {
  const place = faultPlaces.get(input)
  if (place) place.textContent = sentence
  if (sentence === '') input.removeAttribute('aria-invalid')
  else input.setAttribute('aria-invalid', 'true')
}

/** @param {{ shortUrl: string, longUrl: string, expiresAt: string | null }} link */
function showLink({ shortUrl, longUrl, expiresAt }) {
  short.href = shortUrl
  const codeAt = shortUrl.lastIndexOf('/') + 1
  const code = document.createElement('span')
  code.textContent = shortUrl.slice(codeAt)
  // It may break before its code, but not within it.
  short.replaceChildren(shortUrl.slice(0, codeAt), document.createElement('wbr'), code)
  target.textContent = longUrl
  expiry.replaceChildren(expiryOf(expiresAt))
  qr.src = qrDownload.href = `${new URL(shortUrl).pathname}.svg`
  statusLine.textContent = fill(strings.ready, { url: shortUrl })
  form.reset()
  for (const input of inputs) {
    input.value = '' // `reset` restores the values of a faulty form that the server rendered
    showFault(input, '')
  }
  message.textContent = ''
  showLifetime()
  result.hidden = false
  result.focus()
  // For recent.js and copy.js; the page works without them.
  const detail = { shortUrl, longUrl, expiresAt }
  document.dispatchEvent(new CustomEvent('link-created', { detail }))
}

/** @param {string | null} expiresAt */
function expiryOf(expiresAt) {
  if (expiresAt === null) return strings.never
  const time = document.createElement('time')
  time.dateTime = expiresAt
  time.textContent = inWords(new Date(expiresAt))
  return time
}

/** In the time zone of the browser, rounded down to the minute. @param {Date} instant */
function inWords(instant) {
  return instant.toLocaleString(strings.locale, {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  })
}

/** @param {boolean} pending */
function setPending(pending) {
  isPending = pending
  submit.setAttribute('aria-disabled', String(pending))
  submit.textContent = pending ? strings.submitting : strings.submit
}

async function shareLink() {
  try {
    await navigator.share({ url: short.href })
  } catch (error) {
    const isCancelled = error instanceof DOMException && error.name === 'AbortError'
    if (!isCancelled) statusLine.textContent = strings.notShared
  }
}
