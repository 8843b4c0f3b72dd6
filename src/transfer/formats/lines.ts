// Splits a file into lines of bounded length.
import { RECORD_CHARACTERS_MAX } from '../format.ts'

/** Yields each line without its line break; `undefined` for a line that is too long. */
export async function* linesOf(
  file: AsyncIterable<string>,
): AsyncGenerator<string | undefined, void, undefined> {
  let rest = ''
  let isTooLong = false
  for await (const characters of file) {
    const lines = characters.split('\n')
    const last = lines.pop() ?? ''
    for (const line of lines) {
      const whole = rest + line
      yield isTooLong || whole.length > RECORD_CHARACTERS_MAX ? undefined : whole
      rest = ''
      isTooLong = false
    }
    rest = isTooLong ? '' : rest + last
    if (rest.length > RECORD_CHARACTERS_MAX) {
      rest = ''
      isTooLong = true
    }
  }
  if (isTooLong) yield undefined
  else if (rest !== '') yield rest
}
