// Strings of unknown origin on a terminal: control characters could change what it displays.

const invisible = /[\p{C}\u2028\u2029]/gu

/** Replaces control, format and unassigned characters with escapes such as `\u001b`, as in JSON. */
export function escapeInvisible(text: string): string {
  return text.replace(invisible, (character) =>
    Array.from({ length: character.length }, (_, at) => {
      return `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
    }).join(''),
  )
}
