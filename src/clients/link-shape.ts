// The format of a link in the responses of the admin API.
import * as z from 'zod'

/** A link. Further members, of a newer process, are kept. */
export const linkShape = z.looseObject({
  short_code: z.string(),
  long_url: z.string().nullable(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  creator_id: z.string().nullable(),
  state: z.string(),
})
