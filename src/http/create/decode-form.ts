// Forms as browsers send them: `application/x-www-form-urlencoded`, in UTF-8.
import { notEncoded } from './post-link.ts'

/** The Content-Type of a form. */
export const formType = /^application\/x-www-form-urlencoded[\t ]*(;|$)/i

/** The detail of a 415 for another Content-Type. */
export const notForm = `The Content-Type must be application/x-www-form-urlencoded, ${notEncoded}`

/** The names and values of a form, in order; `undefined` if it is not UTF-8. */
export function decodePairs(bytes: Buffer): [string, string][] | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const decode = (encoded: string) => decodeURIComponent(encoded.replaceAll('+', ' '))
    return text
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const [name, ...value] = pair.split('=')
        return [decode(name ?? ''), decode(value.join('='))]
      })
  } catch {
    return undefined // bytes or escapes that are not UTF-8
  }
}
