// The name that a user probably meant.

/** The hint for a wrong name, such as `; did you mean link?`; empty if no name is similar. */
export function hintOf(given: string, names: readonly string[]): string {
  const changesMax = Math.max(1, Math.floor(given.length / 3))
  const distances = names.map((name) => ({ name, changes: changesBetween(given, name) }))
  const [nearest] = distances.toSorted((a, b) => a.changes - b.changes)
  if (nearest === undefined || nearest.changes > changesMax) return ''
  return `; did you mean ${nearest.name}?`
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `from` into `to`. */
function changesBetween(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, j) => j)]
  const at = (i: number, j: number) => rows[i]?.[j] ?? Infinity
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= to.length; j++) {
      const isEqual = from[i - 1] === to[j - 1]
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const replaced = at(i - 1, j - 1) + (isEqual ? 0 : 1)
      const swapped = isSwap ? at(i - 2, j - 2) + 1 : Infinity
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped))
    }
  }
  return at(from.length, to.length)
}
