// The notes of a release: the section of its version, and versions without one.
import { expect, test } from '@jest/globals'
import { releaseNotes } from './release-notes.ts'

const changelog = [
  '# Changelog',
  ...['', '## Unreleased', '', '- next'],
  ...['', '## 0.2.0 (2026-11-27)', '', '### Service', '', '- two'],
  ...['', '## [0.1.0]', '', '- one', ''],
  ...['', '## 0.0.1', ''],
].join('\n')

test('the notes are the section of the version', () => {
  expect(releaseNotes(changelog, '0.2.0')).toBe('### Service\n\n- two\n')
  expect(releaseNotes(changelog, '0.1.0')).toBe('- one\n')
})

test.each(['0.2', '0.0.1', '2.0.0'])(
  'a version without a section cannot be released: %s',
  (one) => {
    expect(() => releaseNotes(changelog, one)).toThrow(`no section "## ${one}"`)
  },
)
