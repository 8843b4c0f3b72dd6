// Spares the reload on the page to shorten a link: sends the form to the API, shows the answer in
// the elements that the server rendered, and copies the short link. Without this file the form
// works too. It talks to /v1/urls of its own origin and to nobody else.

/** How long an answer is waited for; the server itself gives up sooner. */
const ANSWER_MS_MAX = 15_000
const COPIED_MS = 2000

/** @template {HTMLElement} T @param {string} id @returns {T} */
const part = (id) => /** @type {T} */ (document.getElementById(id))

/** @type {HTMLFormElement} */
const form = part('shorten')
/** @type {HTMLButtonElement} */
const submit = part('submit')
/** @type {HTMLButtonElement} */
const copy = part('copy')
/** @type {HTMLAnchorElement} */
const short = part('short')
const result = part('result')
const message = part('message')
const statusLine = part('status')

const inputs = /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll('input')])

let isPending = false
/** The body sent last and its Idempotency-Key, until it has succeeded. */
let attempt = { body: '', key: '' }

form.addEventListener('submit', (event) => {
  event.preventDefault()
  if (!isPending) void shorten()
})
for (const input of inputs) {
  input.addEventListener('input', () => {
    showFault(input, '')
  })
}
copy.addEventListener('click', () => void copyLink())
copy.hidden = false

async function shorten() {
  const body = bodyOf(form)
  const { long_url: longUrl } = JSON.parse(body)
  if (attempt.body !== body) attempt = { body, key: newKey() }
  setPending(true)
  const answer = await send(attempt)
  setPending(false)
  clearFaults()
  if ('created' in answer) {
    attempt = { body: '', key: '' }
    showLink({ ...answer.created, longUrl })
  } else {
    result.hidden = true
    showProblem(answer)
  }
}

/**
 * The body for the API; empty fields are absent.
 * @param {HTMLFormElement} from
 */
function bodyOf(from) {
  const filled = [...new FormData(from)].filter(([, value]) => value !== '')
  const { ttl_days: days, ...rest } = Object.fromEntries(filled)
  // What is no finite number would be null in JSON, and so absent: the service shall refuse it.
  const isInteger = typeof days === 'string' && /^[0-9]+(\.0+)?$/.test(days)
  const isNumber = isInteger && Number.isFinite(Number(days))
  return JSON.stringify({ ...rest, ttl_days: isNumber ? Number(days) : days })
}

/** A key that nobody else has. `randomUUID` is missing where the page came by plain HTTP. */
function newKey() {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** @typedef {{ shortUrl: string, expiresAt: string | null }} Created */
/** @typedef {{ pointer: string, detail: string }} Fault */
/** @typedef {{ type?: string, detail?: string, errors?: Fault[] }} Problem */

/**
 * What the API answered: the link, or sentences by field ('' = the whole form).
 * @param {{ body: string, key: string }} request
 * @returns {Promise<{ created: Created } | { faults: Map<string, string> }>}
 */
async function send({ body, key }) {
  try {
    const response = await fetch('/v1/urls', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
      body,
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    })
    const answer = await response.json().catch(() => ({}))
    if (typeof answer.short_url !== 'string') return { faults: faultsOf(response, answer) }
    return { created: { shortUrl: answer.short_url, expiresAt: answer.expires_at } }
  } catch {
    const text = 'No answer came: the connection may be down. Please try again;'
    return { faults: new Map([['', `${text} it will not make a second link.`]]) }
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
  const detail = problem.detail ?? `The service answered with the status ${response.status}.`
  const faults = new Map()
  if (response.status === 429) faults.set('', tooManySentence(response.headers.get('Retry-After')))
  else if (name === 'alias-taken') faults.set('custom_alias', detail)
  else if (name === 'store-unavailable') {
    const text = 'The link could not be confirmed.'
    faults.set('', `${text} Please try again in a moment; it will not make a second link.`)
  } else {
    for (const fault of problem.errors ?? []) {
      const input = inputs.find(({ id }) => `/${id}` === fault.pointer)
      if (input !== undefined && !faults.has(input.id))
        faults.set(input.id, withSubject(input, fault.detail))
    }
    if (faults.size === 0) faults.set('', detail)
  }
  return faults
}

/** @param {string | null} seconds */
function tooManySentence(seconds) {
  const wait = seconds === '1' ? '1 second' : `${seconds ?? 'a few'} seconds`
  return `Too many links were made from here just now. Please try again in ${wait}.`
}

/** @param {HTMLInputElement} input @param {string} detail */
function withSubject(input, detail) {
  return `${part(`${input.id}-fault`).dataset.subject} ${detail}`
}

/** @param {{ faults: Map<string, string> }} answer */
function showProblem({ faults }) {
  message.textContent = faults.get('') ?? ''
  for (const input of inputs) showFault(input, faults.get(input.id) ?? '')
  const first = inputs.find(({ id }) => faults.has(id))
  if (first !== undefined) first.focus()
}

/** @param {HTMLInputElement} input @param {string} text */
function showFault(input, text) {
  part(`${input.id}-fault`).textContent = text
  if (text === '') input.removeAttribute('aria-invalid')
  else input.setAttribute('aria-invalid', 'true')
}

function clearFaults() {
  message.textContent = ''
  for (const input of inputs) showFault(input, '')
}

/** @param {{ shortUrl: string, longUrl: string, expiresAt: string | null }} link */
function showLink({ shortUrl, longUrl, expiresAt }) {
  short.href = shortUrl
  short.textContent = shortUrl
  part('target').textContent = longUrl
  part('until').replaceChildren(...untilOf(expiresAt))
  statusLine.textContent = `Your short link is ready: ${shortUrl}`
  copy.textContent = 'Copy'
  form.reset()
  for (const input of inputs) input.value = '' // a form that came back faulty resets to its values
  result.hidden = false
  result.focus()
}

/** @param {string | null} expiresAt */
function untilOf(expiresAt) {
  if (expiresAt === null) return ['without an end date']
  const time = document.createElement('time')
  time.dateTime = expiresAt
  const inWords = new Date(expiresAt).toLocaleString('en-GB', {
    dateStyle: 'long',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  time.textContent = `${inWords} UTC`
  return ['until ', time]
}

/** @param {boolean} pending */
function setPending(pending) {
  isPending = pending
  submit.setAttribute('aria-disabled', String(pending))
  submit.textContent = pending ? 'Shortening…' : 'Shorten'
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
    await navigator.clipboard.writeText(text) // absent where the page came by plain HTTP
    return true
  } catch {
    getSelection()?.selectAllChildren(short)
    return document.execCommand('copy')
  }
}
