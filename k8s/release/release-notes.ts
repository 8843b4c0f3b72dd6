// The notes of a release: its section of CHANGELOG.md. Pure.

/** The section `version` without its heading. Throws an error if there is none, or it is empty. */
export function releaseNotes(changelog: string, version: string): string {
  const lines = changelog.split('\n')
  const isHeading = (line: string) => line.startsWith('## ')
  const start = lines.findIndex((line) => isHeading(line) && line.split(/[\s[\]]+/)[1] === version)
  const rest = lines.slice(start + 1)
  const end = rest.findIndex(isHeading)
  const notes = (end < 0 ? rest : rest.slice(0, end)).join('\n').trim()
  if (start >= 0 && notes !== '') return `${notes}\n`
  throw new Error(`Cannot write the notes: CHANGELOG.md has no section "## ${version}"`)
}
