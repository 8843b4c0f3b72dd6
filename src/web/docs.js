// The buttons and forms of the API reference, which the server renders hidden: copies a command,
// and sends a request to this server, the page's own origin, and shows it with its response. Opens
// the sections around the target of a link, which not every browser does.

/** The deadline of a response with its body; the server's own deadline is earlier. */
const RESPONSE_MS_MAX = 15_000
/** The maximum of a body that the page shows. */
const BODY_BYTES_MAX = 65_536
const COPIED_MS = 2000

const statusLine = /** @type {HTMLElement} */ (document.getElementById('status'))

for (const button of document.querySelectorAll('button.copy')) {
  const code = /** @type {HTMLElement} */ (button.closest('.command')?.querySelector('code'))
  button.addEventListener('click', () => void copyCommand(button, code))
  button.hidden = false
}
for (const form of document.querySelectorAll('form.try')) {
  const send = form.querySelector('button')
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (send.getAttribute('aria-disabled') !== 'true') void tryOperation(form, send)
  })
  form.hidden = false
}
openTarget()
addEventListener('hashchange', openTarget)

/** Opens the closed sections that contain the target of the fragment. */
function openTarget() {
  const target = document.getElementById(location.hash.slice(1))
  const closed = [...document.querySelectorAll('details:not([open])')]
  const around = closed.filter((section) => section.contains(target))
  for (const section of around) section.open = true
  if (around.length > 0) target.scrollIntoView()
}

/** @param {HTMLFormElement} form @param {HTMLButtonElement} send */
async function tryOperation(form, send) {
  const failure = form.querySelector('.failure')
  const exchange = form.querySelector('.exchange')
  failure.textContent = ''
  exchange.hidden = true
  send.setAttribute('aria-disabled', 'true')
  let request
  try {
    request = requestOf(form)
    form.querySelector('.request').textContent = renderRequest(request)
    const { summary, content, created } = await exchangeOf(request)
    if (created) offerCode(created)
    form.querySelector('.response').replaceChildren(...content)
    exchange.hidden = false
    statusLine.textContent = `Response: ${summary}`
  } catch (error) {
    failure.textContent = renderFailure(error, request)
  } finally {
    send.setAttribute('aria-disabled', 'false')
  }
}

/**
 * @param {Error} error
 * @param {TriedRequest} [request] absent if it was not sent
 */
function renderFailure(error, request) {
  const isTimeout = error.name === 'TimeoutError'
  const cause = isTimeout
    ? `No response within ${RESPONSE_MS_MAX / 1000} s`
    : `The request failed: ${error.message.replace(/\.$/, '')}`
  if (request?.method !== 'POST') return `${cause}.`
  const hasKey = request.headers.some(([name]) => name === 'Idempotency-Key')
  const retry = hasKey
    ? 'a retry with the same Idempotency-Key is safe.'
    : 'without an Idempotency-Key, a retry can create a second link.'
  return `${cause}. The outcome is unknown: ${retry}`
}

/**
 * @typedef {object} TriedRequest
 * @property {string} method
 * @property {string} path
 * @property {[string, string][]} headers as the reader entered them, without empty ones
 * @property {string | undefined} body
 */

/**
 * The request of the form. A name of a field is `path:NAME`, `header:NAME` or `body`. The patterns
 * of the fields exclude the path segments . and .., which fetch would remove.
 * @param {HTMLFormElement} form
 * @returns {TriedRequest}
 */
function requestOf(form) {
  const request = { method: form.dataset.method, path: form.dataset.path, headers: [] }
  for (const { name, value, dataset } of form.elements) {
    const [place, parameter] = name.split(':')
    if (place === 'path') {
      request.path = request.path.replace(`{${parameter}}`, () => encodeURIComponent(value))
    } else if (place === 'header' && value !== '') {
      request.headers.push([parameter, value])
    } else if (place === 'body') {
      request.headers.push(['Content-Type', dataset.type])
      request.body = value
    }
  }
  new Headers(request.headers) // throws if a header cannot be sent
  return request
}

/** @param {TriedRequest} request */
function renderRequest({ method, path, headers, body }) {
  const lines = [`${method} ${path}`, `Host: ${location.host}`]
  for (const [name, value] of headers) {
    const isSecret = name.toLowerCase() === 'x-api-key'
    lines.push(`${name}: ${isSecret ? '•'.repeat(8) : value}`)
  }
  return `${lines.join('\n')}\n${body === undefined ? '' : `\n${body}`}`
}

/**
 * Sends the request; returns the response, as one line and in full, and the URL of a created link.
 * @param {TriedRequest} request
 * @returns {Promise<{ summary: string, content: (string | Node)[], created?: string }>}
 */
async function exchangeOf({ method, path, headers, body }) {
  const response = await fetch(path, {
    method,
    headers,
    body,
    cache: 'no-store',
    redirect: 'manual',
    signal: AbortSignal.timeout(RESPONSE_MS_MAX),
  })
  if (response.type === 'opaqueredirect') return redirectTo(path)
  const summary = `${response.status} ${response.statusText}`.trim()
  const lines = [...response.headers].map(([name, value]) => `${name}: ${value}`)
  const shown = await readBody(response)
  const created = response.status === 201 ? response.headers.get('Location') : undefined
  return { summary, content: [`${[summary, ...lines].join('\n')}\n\n${shown}`], created }
}

/** Fills the code of the created link into the other forms. @param {string} shortUrl */
function offerCode(shortUrl) {
  const code = shortUrl.slice(shortUrl.lastIndexOf('/') + 1)
  for (const input of document.querySelectorAll('input[name="path:code"]')) input.value = code
}

/** A browser hides the status and headers of a redirect from pages. @param {string} path */
function redirectTo(path) {
  const link = document.createElement('a')
  link.href = path
  link.textContent = new URL(path, location.origin).href
  const summary = 'a redirect (301 or 302)'
  const hidden = 'The browser hides its status and headers from pages: use curl, or open'
  return { summary, content: [`The response is ${summary}.\n${hidden}\n`, link] }
}

/** Reads the body up to the maximum. @param {Response} response */
async function readBody({ body }) {
  if (body === null) return ''
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let shown = ''
  for (let bytes = 0; bytes < BODY_BYTES_MAX;) {
    const { done, value } = await reader.read()
    if (done) return shown + decoder.decode()
    shown += decoder.decode(value.subarray(0, BODY_BYTES_MAX - bytes), { stream: true })
    bytes += value.length
  }
  await reader.cancel()
  return `${shown}\n(The rest of the body is not shown.)`
}

/** @param {HTMLButtonElement} button @param {HTMLElement} code */
async function copyCommand(button, code) {
  const isCopied = await writeClipboard(code)
  button.textContent = isCopied ? 'Copied' : 'Selected'
  statusLine.textContent = isCopied
    ? 'The command was copied.'
    : 'The command is selected: copy it with your keyboard.'
  setTimeout(() => void (button.textContent = 'Copy'), COPIED_MS)
}

/** @param {HTMLElement} code */
async function writeClipboard(code) {
  try {
    await navigator.clipboard.writeText(code.textContent) // absent if loaded over plain HTTP
    return true
  } catch {
    getSelection()?.selectAllChildren(code)
    return document.execCommand('copy')
  }
}
