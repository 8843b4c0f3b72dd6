// The name of the operator that commands send: the setting, or the operating system's user.
import { userInfo } from 'node:os'
import { expect, test } from '@jest/globals'
import { ConfigError, parseConfig } from '../../config/config.ts'
import { operatorSetting } from './operator-setting.ts'

const operatorOf = (env: Record<string, string>) =>
  parseConfig({ OPERATOR: operatorSetting }, env).OPERATOR

test.each(['ann', 'ann@example.com', 'x'.repeat(64)])('%s is sent as it is set', (name) => {
  expect(operatorOf({ OPERATOR: name })).toBe(name)
})

test('if it is unset, the user of the process is sent', () => {
  expect(operatorOf({})).toBe(userInfo().username)
  expect(operatorOf({ OPERATOR: '' })).toBe(userInfo().username)
})

test.each(['a b', 'r\u00e9', 'x'.repeat(65)])('%j is rejected', (name) => {
  expect(() => operatorOf({ OPERATOR: name })).toThrow(ConfigError)
  expect(() => operatorOf({ OPERATOR: name })).toThrow(/must be 1 to 64 visible ASCII characters/)
})
