// Encodes numbers as codes of base62 digits.

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Length of a generated code, in characters. */
export const GENERATED_LENGTH = 7

/** Number of possible generated codes: 62⁷. */
export const CODE_SPACE = 62 ** GENERATED_LENGTH

/** Encodes `value`, an integer in [0, 62⁷), as seven base62 digits. */
export function toBase62(value: number): string {
  let rest = value
  let code = ''
  for (let digit = 0; digit < GENERATED_LENGTH; digit++) {
    code = (DIGITS[rest % 62] ?? '') + code
    rest = Math.floor(rest / 62)
  }
  return code
}
