// The settings of API keys.
import { expect, test } from '@jest/globals'
import { ConfigError, parseConfig } from '../config/config.ts'
import { apiKeyDependentSettings, apiKeySettings } from './settings.ts'

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
})
