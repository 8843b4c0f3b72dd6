// Values with `*` in rules: each stands for zero or more characters.

/** A pattern split at its `*`; one part if it has none. */
export function splitPattern(pattern: string): readonly string[] {
  return pattern.split('*')
}

/** Whether a value matches a pattern of at least two parts. Linear except for repeats in a part. */
export function matchesParts(parts: readonly string[], value: string): boolean {
  const last = parts.length - 1
  const prefix = parts[0] ?? ''
  const suffix = parts[last] ?? ''
  if (!value.startsWith(prefix) || !value.endsWith(suffix)) return false
  const end = value.length - suffix.length
  let at = prefix.length
  for (let i = 1; i < last; i++) {
    const part = parts[i] ?? ''
    const found = value.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= end
}
