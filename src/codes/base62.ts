// Numbers as codes of base62 digits.

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Characters of a generated code. */
export const GENERATED_LENGTH = 7

/** How many generated codes there are: 62⁷. */
export const CODE_SPACE = 62 ** GENERATED_LENGTH

/** `value`, an integer from 0 below 62⁷, as seven base62 digits. */
export function toBase62(value: number): string {
  let rest = value
  let text = ''
  for (let place = 0; place < GENERATED_LENGTH; place++) {
    text = (DIGITS[rest % 62] ?? '') + text
    rest = Math.floor(rest / 62)
  }
  return text
}
