// `POST /admin/actions`: writes a change of an operator list to the audit log. The commands change
// files or objects in Kubernetes themselves, and report the change here. A line never contains an
// API key or its hash: the schema admits only names.
import { type Request, type Response, Router } from 'express'
import * as z from 'zod'
import { API_KEY_NAME_PATTERN, CREATOR_ID_MAX } from '../../create/api-keys.ts'
import { requestIdOf } from '../../telemetry/request-id.ts'
import type { Log } from '../../telemetry/log.ts'
import { type BodyRule, invalidBody } from '../field-faults.ts'
import { rejectOtherMethods } from '../method-not-allowed.ts'
import { type Problem, sendProblem } from '../problem.ts'
import { bodyTooLarge, jsonType, parseJson, readBody } from '../read-body.ts'
import { clientOf } from './audit.ts'

/** Maximum number of names or targets of one action; the commands only count the others. */
export const SUBJECTS_MAX = 5
/** Maximum length of a target; the commands truncate longer ones. */
export const SUBJECT_LENGTH_MAX = 200

const namesAllowed = `must be 1 to ${SUBJECTS_MAX} names of API keys`
const targetsAllowed =
  `must be at most ${SUBJECTS_MAX} strings of 1 to ${SUBJECT_LENGTH_MAX} visible ASCII ` +
  'characters'
const countAllowed = 'must be an integer of 0 or more'
const creatorAllowed = `must be an integer from 1 to ${CREATOR_ID_MAX} as a string`
const outcomeAllowed = 'must be success or unknown'
const actionAllowed = 'must be key-create, key-revoke, block-add, block-remove or block-import'

const error = (allowed: string) => ({ error: allowed })
const counted = {
  /** The number of keys or targets that the action has changed. */
  count: z.int(error(countAllowed)).min(0, error(countAllowed)),
  /** `unknown`: the change was possibly written. */
  outcome: z.enum(['success', 'unknown'], error(outcomeAllowed)),
}
const keys = z
  .array(z.string(error(namesAllowed)).regex(API_KEY_NAME_PATTERN, error(namesAllowed)), {
    error: namesAllowed,
  })
  .min(1, error(namesAllowed))
  .max(SUBJECTS_MAX, error(namesAllowed))
const targets = z
  .array(
    z
      .string(error(targetsAllowed))
      .regex(new RegExp(`^[\\x21-\\x7e]{1,${SUBJECT_LENGTH_MAX}}$`), error(targetsAllowed)),
    { error: targetsAllowed },
  )
  .max(SUBJECTS_MAX, error(targetsAllowed))
const creator = z
  .string(error(creatorAllowed))
  .regex(/^[1-9]\d{0,18}$/, error(creatorAllowed))
  .refine((id) => BigInt(id) <= CREATOR_ID_MAX, error(creatorAllowed))

const shape = z.discriminatedUnion(
  'action',
  [
    z.strictObject({ action: z.literal('key-create'), keys, creator, ...counted }),
    z.strictObject({ action: z.literal('key-revoke'), keys, ...counted }),
    z.strictObject({
      action: z.enum(['block-add', 'block-remove', 'block-import']),
      targets,
      ...counted,
    }),
  ],
  error(actionAllowed),
)

/** A change of an operator list. */
export type ListAction = z.output<typeof shape>

/** What is allowed in a body with this action. */
function ruleOf(body: unknown): BodyRule {
  const action = typeof body === 'object' && body && 'action' in body ? body.action : undefined
  const ofKeys = action === 'key-create' ? ['keys', 'creator'] : ['keys']
  return {
    members: [
      ...['action', 'outcome', 'count'],
      ...(action === 'key-create' || action === 'key-revoke' ? ofKeys : ['targets']),
    ],
    body: 'The body must be a JSON object with the member action',
  }
}

/** The lists of a process: the values of these settings. */
export interface ListPaths {
  readonly API_KEYS: string | undefined
  readonly BLOCKED_TARGETS: string | undefined
}

/** Dependencies of the route. */
export interface ActionDeps {
  readonly log: Pick<Log, 'info'>
  readonly baseUrl: string
  /** Absent in a process that never reads the lists, such as the controller. */
  readonly lists?: ListPaths
}

/** A header of the response: it names the setting that the process must have to read the list. */
const UNSET_SETTING = 'Curtail-Unset-Setting'

/** The route. */
export function actionRoutes(deps: ActionDeps): Router {
  const router = Router({ strict: true, caseSensitive: true })
  router.post('/actions', async (req, res) => {
    const read = await readAction(req, res)
    if (read === 'aborted') return
    if ('problem' in read) {
      sendProblem(res, read.problem, deps.baseUrl)
      return
    }
    const fields = { ...read.action, ...clientOf(req), requestId: requestIdOf(req) }
    deps.log.info(fields, 'operator action')
    const setting = read.action.action.startsWith('key-') ? 'API_KEYS' : 'BLOCKED_TARGETS'
    if (deps.lists !== undefined && deps.lists[setting] === undefined)
      res.set(UNSET_SETTING, setting)
    res.status(204).end()
  })
  rejectOtherMethods(router, { '/actions': 'POST' }, deps.baseUrl)
  return router
}

async function readAction(
  req: Request,
  res: Response,
): Promise<{ action: ListAction } | { problem: Problem } | 'aborted'> {
  if (!jsonType.test(req.get('Content-Type') ?? '') || req.get('Content-Encoding') !== undefined) {
    const detail = 'The Content-Type must be application/json, without encoding'
    return { problem: { name: 'unsupported-media-type', detail } }
  }
  const bytes = await readBody(req, res)
  if (bytes === 'aborted') return bytes
  if (bytes === 'too-large') return { problem: bodyTooLarge }
  const body = parseJson(bytes)
  if ('problem' in body) return body
  const parsed = shape.safeParse(body.json, { reportInput: true })
  return parsed.success
    ? { action: parsed.data }
    : { problem: invalidBody(parsed.error.issues, ruleOf(body.json)) }
}
