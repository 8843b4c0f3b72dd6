// Avoids the reload of the home page: sends the form to the API, shows the result in the elements
// that the server rendered, and copies the short link. The form also works without this file. It
// sends requests only to /v1/urls and /{code}.svg of its own origin.

/** The deadline of a response; the server's own deadline is earlier. */
const RESPONSE_MS_MAX = 15_000
const COPIED_MS = 2000

/** @template {HTMLElement} T @param {string} id @returns {T} */
const element = (id) => /** @type {T} */ (document.getElementById(id))

/** @type {HTMLFormElement} */
const form = element('create')
/** @type {HTMLButtonElement} */
const submit = element('submit')
/** @type {HTMLButtonElement} */
const copy = element('copy')
/** @type {HTMLAnchorElement} */
const short = element('short')
/** @type {HTMLImageElement} */
const qr = element('qr')
/** @type {HTMLAnchorElement} */
const qrDownload = element('qr-download')
/** @type {HTMLInputElement} */
const alias = element('custom_alias')
const suggestion = element('suggestion')
const suggestionUse = element('suggestion-use')
const result = element('result')
const message = element('message')
const statusLine = element('status')

const inputs = /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll('input')])

let isPending = false
/** The body sent last and its Idempotency-Key, until it has succeeded. */
let attempt = { body: '', key: '' }

form.addEventListener('submit', (event) => {
  event.preventDefault()
  if (!isPending) void create()
})
for (const input of inputs) {
  input.addEventListener('input', () => {
    showFault(input, '')
    if (input === alias) suggestion.hidden = true
  })
}
copy.addEventListener('click', () => void copyLink())
copy.hidden = false
suggestionUse.addEventListener('click', useSuggestion)
suggestionUse.hidden = false

async function create() {
  const body = bodyOf(form)
  const { long_url: longUrl } = JSON.parse(body)
  if (attempt.body !== body) attempt = { body, key: newKey() }
  setPending(true)
  const outcome = await send(attempt)
  setPending(false)
  clearFaults()
  if ('created' in outcome) {
    attempt = { body: '', key: '' }
    showLink({ ...outcome.created, longUrl })
  } else {
    result.hidden = true
    showProblem(outcome)
  }
}

/**
 * The body for the API; empty fields are absent. Forgives what people paste or omit.
 * @param {HTMLFormElement} from
 */
function bodyOf(from) {
  const trimmed = [...new FormData(from)].map(([name, value]) => [name, String(value).trim()])
  const filled = trimmed.filter(([, value]) => value !== '')
  const { ttl_days: days, ...rest } = Object.fromEntries(filled)
  const bareLink = new RegExp(element('long_url').dataset.bareLink ?? '$^', 'u')
  if (bareLink.test(rest.long_url)) rest.long_url = `https://${rest.long_url}`
  // A value that is not a finite number is sent as a string, which the service rejects; as a JSON
  // number it would be null, and so absent.
  const isInteger = typeof days === 'string' && /^[0-9]+(\.0+)?$/.test(days)
  const isNumber = isInteger && Number.isFinite(Number(days))
  return JSON.stringify({ ...rest, ttl_days: isNumber ? Number(days) : days })
}

/** A unique key. `randomUUID` is missing if the page was loaded over plain HTTP. */
function newKey() {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** @typedef {{ shortUrl: string, expiresAt: string | null }} Created */
/** @typedef {{ pointer: string, detail: string }} Fault */
/** @typedef {{ faults: Map<string, string>, isTaken?: boolean }} Faults */
/** @typedef {{ type?: string, detail?: string, errors?: Fault[] }} Problem */

/**
 * The API's response: the link, or sentences by field ('' = the whole form).
 * @param {{ body: string, key: string }} request
 * @returns {Promise<{ created: Created } | Faults>}
 */
async function send({ body, key }) {
  try {
    const response = await fetch('/v1/urls', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
      body,
      signal: AbortSignal.timeout(RESPONSE_MS_MAX),
    })
    const json = await response.json().catch(() => ({}))
    if (typeof json.short_url !== 'string') return faultsOf(response, json)
    return { created: { shortUrl: json.short_url, expiresAt: json.expires_at } }
  } catch {
    const text = 'No response arrived: the connection may be down. Please retry;'
    return { faults: new Map([['', `${text} a retry creates no second link.`]]) }
  }
}

/**
 * @param {Response} response
 * @param {Problem} problem
 */
function faultsOf(response, problem) {
  const name = String(problem.type ?? '')
    .split('/')
    .at(-1)
  const detail = problem.detail ?? `The service responded with status ${response.status}.`
  const faults = new Map()
  if (response.status === 429) faults.set('', tooManySentence(response.headers.get('Retry-After')))
  else if (name === 'alias-taken') faults.set('custom_alias', detail)
  else if (name === 'store-unavailable') {
    const text = 'The link could not be confirmed.'
    faults.set('', `${text} Please retry in a moment; a retry creates no second link.`)
  } else {
    for (const fault of problem.errors ?? []) {
      const input = inputs.find(({ id }) => `/${id}` === fault.pointer)
      if (input !== undefined && !faults.has(input.id))
        faults.set(input.id, withSubject(input, fault.detail))
    }
    if (faults.size === 0) faults.set('', detail)
  }
  return { faults, isTaken: name === 'alias-taken' }
}

/** @param {string | null} seconds */
function tooManySentence(seconds) {
  const wait = seconds === '1' ? '1 second' : `${seconds ?? 'a few'} seconds`
  return `Too many links were created from this address. Please retry in ${wait}.`
}

/** @param {HTMLInputElement} input @param {string} detail */
function withSubject(input, detail) {
  return `${element(`${input.id}-fault`).dataset.subject} ${detail}`
}

/** @param {Faults} outcome */
function showProblem({ faults, isTaken }) {
  message.textContent = faults.get('') ?? ''
  if (isTaken) showSuggestion(alias.value.trim())
  for (const input of inputs) showFault(input, faults.get(input.id) ?? '')
  const first = inputs.find(({ id }) => faults.has(id))
  if (first !== undefined) first.focus()
}

/** @param {string} taken */
function showSuggestion(taken) {
  const digits = crypto.getRandomValues(new Uint8Array(1))[0].toString(16).padStart(2, '0')
  element('suggested').textContent = `${taken.slice(0, 7).replace(/[-_]+$/, '')}-${digits}`
  suggestion.hidden = false
  statusLine.textContent = `Perhaps available: ${element('suggested').textContent}`
}

function useSuggestion() {
  alias.value = element('suggested').textContent
  showFault(alias, '')
  suggestion.hidden = true
  submit.focus()
}

/** @param {HTMLInputElement} input @param {string} text */
function showFault(input, text) {
  element(`${input.id}-fault`).textContent = text
  if (text === '') input.removeAttribute('aria-invalid')
  else input.setAttribute('aria-invalid', 'true')
}

function clearFaults() {
  suggestion.hidden = true
  message.textContent = ''
  for (const input of inputs) showFault(input, '')
}

/** @param {{ shortUrl: string, longUrl: string, expiresAt: string | null }} link */
function showLink({ shortUrl, longUrl, expiresAt }) {
  short.href = shortUrl
  const codeAt = shortUrl.lastIndexOf('/') + 1
  const code = document.createElement('span')
  code.textContent = shortUrl.slice(codeAt)
  // It may break before its code, but not within it.
  short.replaceChildren(shortUrl.slice(0, codeAt), document.createElement('wbr'), code)
  element('target').textContent = longUrl
  element('expiry').replaceChildren(expiryOf(expiresAt))
  qr.src = qrDownload.href = `${new URL(shortUrl).pathname}.svg`
  statusLine.textContent = `Your short link is ready: ${shortUrl}`
  copy.textContent = 'Copy'
  form.reset()
  for (const input of inputs) input.value = '' // a faulty form from the server resets to its values
  result.hidden = false
  result.focus()
  // For recent.js; the page works without it.
  document.dispatchEvent(new CustomEvent('link-created', { detail: { shortUrl, longUrl } }))
}

/** @param {string | null} expiresAt */
function expiryOf(expiresAt) {
  if (expiresAt === null) return 'never'
  const time = document.createElement('time')
  time.dateTime = expiresAt
  const inWords = new Date(expiresAt).toLocaleString('en-GB', {
    dateStyle: 'long',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  time.textContent = `${inWords} UTC`
  return time
}

/** @param {boolean} pending */
function setPending(pending) {
  isPending = pending
  submit.setAttribute('aria-disabled', String(pending))
  submit.textContent = pending ? 'Creating…' : 'Create'
}

async function copyLink() {
  const isCopied = await writeClipboard(short.href)
  copy.textContent = isCopied ? 'Copied' : 'Selected'
  statusLine.textContent = isCopied
    ? 'The short link was copied.'
    : 'The short link is selected: copy it with your keyboard.'
  if (isCopied) setTimeout(() => void (copy.textContent = 'Copy'), COPIED_MS)
}

/** @param {string} text */
async function writeClipboard(text) {
  try {
    await navigator.clipboard.writeText(text) // absent if the page was loaded over plain HTTP
    return true
  } catch {
    getSelection()?.selectAllChildren(short)
    return document.execCommand('copy')
  }
}
