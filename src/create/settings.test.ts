// The settings of the code pool and of API keys.
import { describe, expect, test } from '@jest/globals'
import { ConfigError, parseConfig } from '../config/config.ts'
import { apiKeyDependentSettings, apiKeySettings, codePoolSetting } from './settings.ts'

const parse = (env: Record<string, string>) =>
  parseConfig(apiKeySettings, env, [apiKeyDependentSettings])

test('without settings there are no keys, and creates require none', () => {
  expect(parse({})).toEqual({ API_KEYS: undefined, API_KEY_REQUIRED: false })
})

test('keys can be required only if API_KEYS is set', () => {
  const given = { API_KEYS: 'keys', API_KEY_REQUIRED: 'true' }
  expect(parse(given)).toEqual({ API_KEYS: 'keys', API_KEY_REQUIRED: true })
  expect(() => parse({ API_KEY_REQUIRED: 'true' })).toThrow(ConfigError)
  expect(() => parse({ API_KEY_REQUIRED: 'true' })).toThrow('set API_KEYS')
  expect(parse({ API_KEYS: 'keys' })).toEqual({ API_KEYS: 'keys', API_KEY_REQUIRED: false })
  expect(parse({ API_KEY_REQUIRED: 'false' }).API_KEY_REQUIRED).toBe(false)
})

describe('CODE_POOL', () => {
  const parsePool = (pool?: string) =>
    parseConfig({ CODE_POOL: codePoolSetting }, { CODE_POOL: pool }).CODE_POOL

  test('is the pool `default` if it is unset', () => {
    expect(parsePool()).toBe('default')
    expect(codePoolSetting.fallback).toBe('default')
  })

  test.each(['a', 'Team_1/eu-west.2', 'x'.repeat(128)])('accepts %s', (pool) => {
    expect(parsePool(pool)).toBe(pool)
  })

  test.each([' a', 'a ', 'a b', 'a:b', 'ä', 'x'.repeat(129)])('rejects %j', (pool) => {
    expect(() => parsePool(pool)).toThrow('CODE_POOL must be 1 to 128 of the characters')
  })
})
