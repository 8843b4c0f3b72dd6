// Finds the elements of a page whose text has a contrast below 4.5 to 1, the minimum of WCAG 2.2.
import type { Page } from 'playwright-core'

interface ShownElement {
  readonly text: string
  readonly colour: string
  /** Backgrounds from the element up to the root. */
  readonly grounds: readonly string[]
}

/** Runs in the page; a string, because this program does not have the DOM types. */
const collectElements = `
  [...document.body.querySelectorAll('*')]
    .filter((element) => element.checkVisibility())
    .filter(({ childNodes }) =>
      [...childNodes].some((one) => one.nodeType === 3 && one.data.trim()))
    .map((element) => {
      const grounds = []
      for (let at = element; at !== null; at = at.parentElement)
        grounds.push(getComputedStyle(at).backgroundColor)
      return { text: element.textContent, colour: getComputedStyle(element).color, grounds }
    })`

const CONTRAST_MIN = 4.5

/** The elements below the minimum, as `CONTRAST TEXT`, and the number of all elements. */
export async function measureContrast(page: Page): Promise<{ faint: string[]; elements: number }> {
  const shown = await page.evaluate<readonly ShownElement[]>(collectElements)
  const faint = shown.flatMap(({ text, colour, grounds }) => {
    const ground = grounds.find((one) => channelsOf(one)[3] === 1) ?? 'rgb(255, 255, 255)'
    const contrast = contrastOf(colour, ground)
    return contrast < CONTRAST_MIN ? [`${contrast.toFixed(2)} ${text.trim()}`] : []
  })
  return { faint, elements: shown.length }
}

function contrastOf(one: string, other: string): number {
  const light = Math.max(luminanceOf(one), luminanceOf(other))
  const dark = Math.min(luminanceOf(one), luminanceOf(other))
  return (light + 0.05) / (dark + 0.05)
}

/** Red, green and blue from 0 to 255, and opacity, of `rgb(…)` or `rgba(…)`. */
function channelsOf(colour: string): [number, number, number, number] {
  const [red = 0, green = 0, blue = 0, opacity = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number)
  return [red, green, blue, opacity]
}

function luminanceOf(colour: string): number {
  const [red, green, blue] = channelsOf(colour)
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

function linear(channel: number): number {
  const share = channel / 255
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
}
