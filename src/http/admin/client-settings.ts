// The settings of the commands that call the admin API.
import * as z from 'zod'
import { withDefault } from '../../config/config.ts'
import { adminTokenSetting } from '../settings.ts'

const adminUrlSetting = withDefault({
  about: 'URL of the admin API that the command calls',
  allowed: 'an http:// or https:// URL',
  fallback: 'http://127.0.0.1:9090',
  schema: z.url({ protocol: /^https?$/ }),
})

/** ADMIN_URL and ADMIN_TOKEN. */
export const clientSettings = {
  ADMIN_URL: adminUrlSetting,
  ADMIN_TOKEN: {
    ...adminTokenSetting,
    about: 'bearer token for the admin API',
    fallback: 'unset: no token is sent',
  },
} as const
