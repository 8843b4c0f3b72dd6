// Finds text of a page that is hard to read: of a contrast under 4.5 to 1 by WCAG 2.2.
import type { Page } from 'playwright-core'

interface ShownText {
  readonly text: string
  readonly colour: string
  /** Backgrounds from the text's own element up to the root. */
  readonly grounds: readonly string[]
}

/** Runs in the page, whose types this program does not have: hence a string. */
const collectTexts = `
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

/** The texts that are too faint, each after its contrast, and how many there were in all. */
export async function measureContrast(page: Page): Promise<{ faint: string[]; texts: number }> {
  const shown = await page.evaluate<readonly ShownText[]>(collectTexts)
  const faint = shown.flatMap(({ text, colour, grounds }) => {
    const ground = grounds.find((one) => partsOf(one)[3] === 1) ?? 'rgb(255, 255, 255)'
    const contrast = contrastOf(colour, ground)
    return contrast < CONTRAST_MIN ? [`${contrast.toFixed(2)} ${text.trim()}`] : []
  })
  return { faint, texts: shown.length }
}

function contrastOf(one: string, other: string): number {
  const light = Math.max(luminanceOf(one), luminanceOf(other))
  const dark = Math.min(luminanceOf(one), luminanceOf(other))
  return (light + 0.05) / (dark + 0.05)
}

/** Red, green and blue from 0 to 255, and opacity, of `rgb(…)` or `rgba(…)`. */
function partsOf(colour: string): [number, number, number, number] {
  const [red = 0, green = 0, blue = 0, opacity = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number)
  return [red, green, blue, opacity]
}

function luminanceOf(colour: string): number {
  const [red, green, blue] = partsOf(colour)
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

function linear(part: number): number {
  const share = part / 255
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
}
