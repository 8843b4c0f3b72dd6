// The copy buttons of the home page: copies the short link beside the button. The button of the
// result is hidden without this file; recent.js adds the buttons of recent links.

const COPIED_MS = 2000

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`Cannot start copy.js: the page has no element ${id}`)
  return found
}

const source = /** @type {HTMLElement | null} */ (document.querySelector('[data-strings]'))
const strings = JSON.parse(source?.dataset.strings ?? '')
const statusLine = element('status')
/** The button of the result; absent on the page without a form. */
const resultButton = document.getElementById('copy')

if (resultButton !== null) {
  resultButton.hidden = false
  document.addEventListener('link-created', () => void (resultButton.textContent = strings.copy))
}
document.addEventListener('click', ({ target }) => {
  const button = /** @type {Element} */ (target).closest('button.copy')
  if (button !== null) void copyLink(button)
})

/** @param {HTMLButtonElement} button */
async function copyLink(button) {
  const link = /** @type {HTMLAnchorElement} */ (button.parentElement?.querySelector('a'))
  const isCopied = await writeClipboard(link)
  button.textContent = isCopied ? strings.copied : strings.selected
  statusLine.textContent = isCopied ? strings.copiedStatus : strings.selectedStatus
  if (isCopied) setTimeout(() => void (button.textContent = strings.copy), COPIED_MS)
}

/** @param {HTMLAnchorElement} link */
async function writeClipboard(link) {
  try {
    await navigator.clipboard.writeText(link.href) // absent if the page was loaded over plain HTTP
    return true
  } catch {
    getSelection()?.selectAllChildren(link)
    return document.execCommand('copy')
  }
}
