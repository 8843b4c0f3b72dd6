// Changes values in a YAML file, and nothing else: comments and layout stay. Pure.
import { isScalar, parseDocument } from 'yaml'

/**
 * Sets the strings at these paths, such as `image.tag`. Throws an error if the file has no such
 * value.
 */
export function setScalars(text: string, values: Readonly<Record<string, string>>): string {
  const document = parseDocument(text)
  const changes = Object.entries(values).map(([path, value]) => {
    const node = document.getIn(path.split('.'), true)
    if (!isScalar(node) || !node.range) throw new Error(`Cannot set ${path}: no such value`)
    const [start, end] = node.range
    return { start, end, value: JSON.stringify(value) }
  })
  // From the end, so that a change does not move the others.
  changes.sort((a, b) => b.start - a.start)
  let changed = text
  for (const { start, end, value } of changes) {
    changed = `${changed.slice(0, start)}${value}${changed.slice(end)}`
  }
  return changed
}
