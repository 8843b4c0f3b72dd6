// Errors of the driver without credentials.
import { expect, test } from '@jest/globals'
import { maskError } from './mask-error.ts'

test('neither the command nor its arguments remain, also in the error of a node', () => {
  const text = "ERR unknown command 'AUTH', with args starting with: 'app' 'hunter2'"
  const command = { name: 'auth', args: ['hunter2'] }
  const ofNode = Object.assign(new Error(text), { command })
  const masked = maskError(Object.assign(new Error(text), { command, lastNodeError: ofNode }))
  expect(masked.message).toBe("ERR unknown command 'AUTH'")
  expect(`${JSON.stringify(masked)} ${masked.stack} ${ofNode.stack}`).not.toContain('hunter2')
})
