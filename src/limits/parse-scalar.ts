// Resolves a plain YAML scalar like the parser of envoyproxy/ratelimit (gopkg.in/yaml.v2) does,
// so that a file has the same meaning: `yes` is true, `012` is ten, and `1.5` is not a string.

/** The type of a scalar. */
type ScalarKind = 'null' | 'bool' | 'int' | 'float' | 'time' | 'string'

/** A resolved scalar. */
export interface Scalar {
  readonly kind: ScalarKind
  readonly text: string
  /** The value of a bool, an int or a float; else `undefined`. */
  readonly value: boolean | number | undefined
}

const keywords = new Map<string, Omit<Scalar, 'text'>>()
for (const word of ['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON']) {
  keywords.set(word, { kind: 'bool', value: true })
}
for (const word of ['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF']) {
  keywords.set(word, { kind: 'bool', value: false })
}
for (const word of ['', '~', 'null', 'Null', 'NULL']) {
  keywords.set(word, { kind: 'null', value: undefined })
}
for (const word of ['.nan', '.NaN', '.NAN']) keywords.set(word, { kind: 'float', value: NaN })
for (const sign of ['', '+', '-']) {
  for (const word of ['.inf', '.Inf', '.INF']) {
    keywords.set(sign + word, { kind: 'float', value: sign === '-' ? -Infinity : Infinity })
  }
}

/** The first number that exceeds a signed 64-bit integer. */
const INT_BOUND = 2n ** 63n
/** A longer scalar is a string: it is not parsed as a number. */
const DIGITS_MAX = 80
const floatForm = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/
const intForm = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/
const timeForm = /^\d{4}-\d{1,2}-\d{1,2}([Tt ]\s*\d{1,2}:\d{1,2}:\d{1,2}.*)?$/

/** Resolves a scalar without quotes and without a tag. */
export function resolvePlain(text: string): Scalar {
  const word = keywords.get(text)
  if (word !== undefined) return { ...word, text }
  const first = text.charCodeAt(0)
  const mayBeNumber = (first >= 48 && first <= 57) || '+-.'.includes(text.charAt(0))
  if (!mayBeNumber || text.length > DIGITS_MAX) return { kind: 'string', text, value: undefined }
  if (timeForm.test(text)) return { kind: 'time', text, value: undefined }
  const plain = text.replaceAll('_', '')
  const int = parseInteger(plain)
  if (int !== undefined) return { kind: 'int', text, value: int }
  if (floatForm.test(plain)) return { kind: 'float', text, value: Number(plain) }
  return { kind: 'string', text, value: undefined }
}

/** A whole number of 64 bits in any base; `undefined` for all other strings and larger numbers. */
function parseInteger(plain: string): number | undefined {
  const groups = intForm.exec(plain)
  if (groups === null) return undefined
  const [, sign, hex, binary, octal, decimal = '0'] = groups
  const digits =
    hex !== undefined
      ? `0x${hex}`
      : binary !== undefined
        ? `0b${binary}`
        : octal !== undefined
          ? `0o${octal}`
          : decimal
  const amount = BigInt(digits)
  const isInRange = sign === '-' ? amount <= INT_BOUND : amount < INT_BOUND
  return isInRange ? Number(sign === '-' ? -amount : amount) : undefined
}
