// The settings of the lookup and of blocked targets.
import { describe, expect, test } from '@jest/globals'
import { ConfigError, parseConfig } from '../config/config.ts'
import { blockedStatusSetting, blockedTargetsSetting, staleSecondsSetting } from './settings.ts'

const settings = {
  STALE_SECONDS: staleSecondsSetting,
  BLOCKED_TARGETS: blockedTargetsSetting,
  BLOCKED_STATUS: blockedStatusSetting,
}
const parse = (env: Record<string, string> = {}) => parseConfig(settings, env)

test('by default, stale targets are served for a day, and no list is read', () => {
  const defaults = { STALE_SECONDS: 86_400, BLOCKED_TARGETS: undefined, BLOCKED_STATUS: 404 }
  expect(parse()).toEqual(defaults)
})

describe('STALE_SECONDS', () => {
  test.each(['0', '1', '2592000'])('accepts %s', (given) => {
    expect(parse({ STALE_SECONDS: given }).STALE_SECONDS).toBe(Number(given))
  })

  test.each(['-1', '2592001', '1.5', 'a day'])('rejects %s', (given) => {
    expect(() => parse({ STALE_SECONDS: given })).toThrow('an integer from 0 to 2592000')
  })
})

test('BLOCKED_TARGETS is a path', () => {
  expect(parse({ BLOCKED_TARGETS: '/lists' }).BLOCKED_TARGETS).toBe('/lists')
  expect(blockedTargetsSetting).toMatchObject({ allowed: 'a path', fallback: 'unset' })
})

describe('BLOCKED_STATUS', () => {
  test.each(['404', '410', '451'])('accepts %s', (given) => {
    expect(parse({ BLOCKED_STATUS: given }).BLOCKED_STATUS).toBe(Number(given))
  })

  test.each(['403', '404 ', '4040'])('rejects %j', (given) => {
    expect(() => parse({ BLOCKED_STATUS: given })).toThrow(ConfigError)
    expect(() => parse({ BLOCKED_STATUS: given })).toThrow('404, 410 or 451')
  })
})
