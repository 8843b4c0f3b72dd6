// The create settings that several roles share: the code pool and the API keys.
import * as z from 'zod'
import { dependentSettings, type Setting, withDefault } from '../config/config.ts'
import { flagSetting, optionalString } from '../config/settings.ts'

/** CODE_POOL. */
export const codePoolSetting = withDefault({
  about: 'name of the pool of codes that the process uses',
  allowed: '1 to 128 of the characters A-Z, a-z, 0-9, dot, _, - and /',
  fallback: 'default',
  schema: z.string().regex(/^[\w./-]{1,128}$/),
})

/** API_KEYS; `undefined` if unset. */
const apiKeysSetting: Setting<string | undefined> = {
  ...optionalString('file or folder of the API keys of clients; changes are applied within 5 s'),
  allowed: 'the path of a file or a folder of files',
  fallback: 'unset: no API keys',
}

/** API_KEYS and API_KEY_REQUIRED. */
export const apiKeySettings = {
  API_KEYS: apiKeysSetting,
  API_KEY_REQUIRED: flagSetting(
    'whether a request to create a link is rejected if it has no valid API key',
    false,
  ),
} as const

/** Without keys, API_KEY_REQUIRED would reject every create. */
export const apiKeyDependentSettings = dependentSettings(
  apiKeySettings,
  ({ API_KEYS: path, API_KEY_REQUIRED: isRequired }) =>
    isRequired && path === undefined
      ? [
          'API_KEY_REQUIRED is true, but API_KEYS is unset: every request to create a link would ' +
            'be rejected: set API_KEYS',
        ]
      : [],
)
