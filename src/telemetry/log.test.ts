// How log lines render errors.
import { expect, test } from '@jest/globals'
import { describeError } from './log.ts'

test('an error is logged without the command that a driver attached', () => {
  const command = { name: 'auth', args: ['user', 'secret'] }
  const error = Object.assign(new Error('WRONGPASS'), { command, code: 'E' })
  const shown = describeError(error)
  expect(shown).toMatchObject({ type: 'Error', message: 'WRONGPASS', code: 'E' })
  expect(JSON.stringify(shown)).not.toContain('secret')
})

test('a value that is not an error is logged unchanged', () => {
  expect(describeError('text')).toBe('text')
})
