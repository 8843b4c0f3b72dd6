// What a line of the log shows of an error.
import { expect, test } from '@jest/globals'
import { describeError } from './log.ts'

test('an error is shown without the command that a driver hung on it', () => {
  const command = { name: 'auth', args: ['user', 'secret'] }
  const error = Object.assign(new Error('WRONGPASS'), { command, code: 'E' })
  const shown = describeError(error)
  expect(shown).toMatchObject({ type: 'Error', message: 'WRONGPASS', code: 'E' })
  expect(JSON.stringify(shown)).not.toContain('secret')
})

test('what is no error is shown as it is', () => {
  expect(describeError('late')).toBe('late')
})
