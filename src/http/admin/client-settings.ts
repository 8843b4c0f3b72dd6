// The settings of the operator's commands.
import { z } from 'zod'
import type { Setting } from '../../config/config.ts'
import { adminTokenSetting } from '../settings.ts'

const adminUrlSetting: Setting<string> = {
  about: 'whom the command talks to',
  allowed: 'an http:// or https:// URL',
  fallback: 'http://127.0.0.1:9090',
  schema: z
    .url({ protocol: /^https?$/ })
    .optional()
    .transform((url) => url ?? 'http://127.0.0.1:9090'),
}

/** ADMIN_URL and ADMIN_TOKEN. */
export const clientSettings = {
  ADMIN_URL: adminUrlSetting,
  ADMIN_TOKEN: { ...adminTokenSetting, about: 'bearer token to send', fallback: 'none is sent' },
} as const
