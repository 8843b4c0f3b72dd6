// Errors of the driver without credentials.
import { expect, test } from '@jest/globals'
import { maskError } from './mask-error.ts'

test('the command and its arguments are removed, even from the error of a node', () => {
  const text = "ERR unknown command 'AUTH', with args starting with: 'app' 'hunter2'"
  const command = { name: 'auth', args: ['hunter2'] }
  const nodeError = Object.assign(new Error(text), { command })
  const masked = maskError(Object.assign(new Error(text), { command, lastNodeError: nodeError }))
  expect(masked.message).toBe("ERR unknown command 'AUTH'")
  expect(`${JSON.stringify(masked)} ${masked.stack} ${nodeError.stack}`).not.toContain('hunter2')
})
