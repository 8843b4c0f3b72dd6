// Checks the alias while it is entered, and suggests another if it is taken. The form also works
// without this file. A check is a HEAD request for the short link, as any client may send it, and
// counts against the same rate limits; it reveals nothing that a create does not.

/** The pause after an input before a check, and the least time between two checks. */
const PAUSE_MS = 500
const INTERVAL_MS = 2000
const RESPONSE_MS_MAX = 5000

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`Cannot start form-alias.js: the page has no element ${id}`)
  return found
}

const form = element('create')
const alias = /** @type {HTMLInputElement} */ (element('custom_alias'))
const fault = element('custom_alias-fault')
const submit = element('submit')
const free = element('free')
const suggestion = element('suggestion')
const suggested = element('suggested')
const use = element('suggestion-use')
const statusLine = element('status')

const strings = JSON.parse(form.dataset.strings ?? '')
const syntax = new RegExp(alias.dataset.syntax ?? '')
const reserved = new RegExp(alias.dataset.reserved ?? '$^', 'i')

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer
let request = new AbortController()
/** Time of the last request, as `performance.now()` returns it. */
let requestedMs = -INTERVAL_MS

alias.addEventListener('input', () => {
  reset()
  const waitMs = Math.max(PAUSE_MS, requestedMs + INTERVAL_MS - performance.now())
  timer = setTimeout(() => void check(alias.value.trim()), waitMs)
})
for (const type of ['submit', 'reset']) form.addEventListener(type, reset)
document.addEventListener('alias-taken', () => {
  reset()
  suggest()
})
use.addEventListener('click', () => {
  alias.value = suggested.textContent
  alias.dispatchEvent(new Event('input', { bubbles: true })) // removes the fault, and checks it
  submit.focus()
})
use.hidden = false

/** Aborts a check, and removes its result. */
function reset() {
  clearTimeout(timer)
  request.abort()
  free.textContent = ''
  suggestion.hidden = true
}

/** @param {string} value */
async function check(value) {
  if (value === '') return
  if (!syntax.test(value)) showFault('malformed', value)
  else if (reserved.test(value)) showFault('reserved', value)
  else {
    const state = await probe(value)
    if (state === 'taken') {
      showFault('alias-taken', value)
      suggest()
    } else if (state === 'free') {
      free.textContent = statusLine.textContent = strings.free.replace('{alias}', value)
    }
  }
}

/**
 * Whether a short link has this code. A code without a link that redirects is only probably free:
 * the record of a deleted or expired link keeps its code. `undefined`: no result.
 * @param {string} code
 */
async function probe(code) {
  requestedMs = performance.now()
  request = new AbortController()
  try {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(RESPONSE_MS_MAX)])
    const response = await fetch(`/${code}`, { method: 'HEAD', redirect: 'manual', signal })
    if (response.type === 'opaqueredirect' || [410, 451].includes(response.status)) return 'taken'
    return response.status === 404 ? 'free' : undefined
  } catch {
    return undefined // superseded, or the service is unavailable: the create reports that
  }
}

/** @param {string} name @param {string} value */
function showFault(name, value) {
  const sentence = strings.faults[name].replace('{alias}', value)
  fault.textContent = statusLine.textContent = sentence
  alias.setAttribute('aria-invalid', 'true')
}

/** Shows another alias, which need not be available. */
function suggest() {
  const digits = crypto.getRandomValues(new Uint8Array(1))[0].toString(16).padStart(2, '0')
  const kept = alias.value
    .trim()
    .slice(0, 7)
    .replace(/[-_]+$/, '')
  suggested.textContent = `${kept}-${digits}`
  suggestion.hidden = false
  const sentence = strings.suggested.replace('{alias}', suggested.textContent)
  statusLine.textContent = `${fault.textContent} ${sentence}`
}
