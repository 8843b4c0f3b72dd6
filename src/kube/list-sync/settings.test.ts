// The settings of operator lists: which objects are watched, and what is rejected.
import { expect, test } from '@jest/globals'
import { ConfigError, parseConfig } from '../../config/config.ts'
import { listSyncDependentSettings, listSyncOptionsOf, listSyncSettings } from './settings.ts'

const optionsOf = (env: Readonly<Record<string, string>>) =>
  listSyncOptionsOf(parseConfig(listSyncSettings, env, [listSyncDependentSettings]))

test('the objects of both kinds are watched once each, if a selector is set', () => {
  const env = { API_KEYS_SECRET: 'keys, partners', BLOCKED_TARGETS_CONFIG_MAPS: 'a,b.c,a' }
  expect(optionsOf({ ...env, LIST_PODS_SELECTOR: 'app=curtail' })).toEqual({
    podSelector: 'app=curtail',
    objects: [
      { plural: 'secrets', name: 'keys' },
      { plural: 'secrets', name: 'partners' },
      { plural: 'configmaps', name: 'a' },
      { plural: 'configmaps', name: 'b.c' },
    ],
  })
  expect(optionsOf(env)).toBeUndefined()
  expect(optionsOf({})).toBeUndefined()
})

test('a selector without objects is rejected', () => {
  expect(() => optionsOf({ LIST_PODS_SELECTOR: 'app=curtail' })).toThrow(
    /LIST_PODS_SELECTOR requires API_KEYS_SECRET or BLOCKED_TARGETS_CONFIG_MAPS/,
  )
})

test.each(['UPPER', 'a/b', 'a,,b', '-a'])('the name %j is rejected', (names) => {
  expect(() => optionsOf({ API_KEYS_SECRET: names })).toThrow(ConfigError)
})
