// Values with `*` in rules: each `*` matches zero or more characters.

/** The segments between the `*` of a pattern; one segment if it has no `*`. */
export function splitPattern(pattern: string): readonly string[] {
  return pattern.split('*')
}

/** Whether a value matches a pattern of at least two segments, in linear time for most patterns. */
export function matchesSegments(segments: readonly string[], value: string): boolean {
  const last = segments.length - 1
  const prefix = segments[0] ?? ''
  const suffix = segments[last] ?? ''
  if (!value.startsWith(prefix) || !value.endsWith(suffix)) return false
  const end = value.length - suffix.length
  let at = prefix.length
  for (let i = 1; i < last; i++) {
    const segment = segments[i] ?? ''
    const found = value.indexOf(segment, at)
    if (found < 0) return false
    at = found + segment.length
  }
  return at <= end
}
