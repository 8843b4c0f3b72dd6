// The settings of the commands that call the API as a client.
import * as z from 'zod'
import { withDefault } from '../../config/config.ts'

/** API_URL and API_KEY. */
export const apiClientSettings = {
  API_URL: withDefault({
    about: 'URL of the API that link create calls',
    allowed: 'an http:// or https:// URL',
    fallback: 'http://127.0.0.1:8080',
    schema: z.url({ protocol: /^https?$/ }),
  }),
  API_KEY: {
    about: 'API key of link create; required if the service requires API keys',
    allowed: '1 to 256 visible ASCII characters',
    fallback: 'unset: no API key is sent',
    secret: true,
    schema: z
      .string()
      .regex(/^[\x21-\x7e]{1,256}$/)
      .optional(),
  },
} as const
