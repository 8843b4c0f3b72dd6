// The output of `--json`.

/** One JSON object per line. */
export function renderJsonLines(objects: readonly object[]): string {
  return objects.map((one) => `${JSON.stringify(one)}\n`).join('')
}
