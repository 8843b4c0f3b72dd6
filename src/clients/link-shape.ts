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
  target_blocked: z.boolean().optional(),
})

/** The state that a person reads: an active link does not redirect if its target is blocked. */
export function shownState(link: z.output<typeof linkShape>): string {
  return link.state === 'active' && link.target_blocked === true ? 'blocked' : link.state
}
