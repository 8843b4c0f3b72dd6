// The audit log: one line for each change of links that is requested through the admin API, even
// if it is rejected or fails. The client chooses the operator's name, so the name proves nothing.
// post-action.ts writes the lines of changes of operator lists.
import type { ServerResponse } from 'node:http'
import type { Request, RequestHandler, Response } from 'express'
import { parseCodePath } from '../../links/alias.ts'
import { requestIdOf } from '../../telemetry/request-id.ts'
import type { Log } from '../../telemetry/log.ts'

/** The outcome of an action; `cache-unavailable`: the store has confirmed it, the cache has not. */
type ActionOutcome =
  | 'success'
  | 'not-found'
  | 'store-unavailable'
  | 'cache-unavailable'
  | 'unauthorized'
  | 'forbidden'
  | 'rejected'
  | 'failed'

/** The result of an action. */
interface ActionResult {
  readonly outcome: ActionOutcome
  /** The number of links that a batch of an import has created. */
  readonly links?: number
}

const operatorSyntax = /^[\x21-\x7e]{1,64}$/
const linkPath = /^\/links(\/[^/]+)(?:\/(disable|enable))?$/
const IMPORT_PATH = '/links/import'

/** The recorders of requests whose result is not recorded yet. */
const pending = new WeakMap<ServerResponse, (result: ActionResult) => void>()

/** Writes the line of each request that changes links, once its result is known. */
export function auditActions(log: Pick<Log, 'info'>): RequestHandler {
  return (req, res, next) => {
    const action = actionOf(req)
    if (action !== undefined) {
      const fields = { ...action, ...clientOf(req), requestId: requestIdOf(req) }
      pending.set(res, ({ outcome, links }) => {
        log.info({ ...fields, links, outcome }, 'operator action')
      })
      // If the client closes the connection first, the route records the result later.
      res.once('close', () => {
        if (res.headersSent) recordAction(res, { outcome: outcomeOf(res.statusCode) })
      })
    }
    next()
  }
}

/** Wraps a route: if it throws, its action is recorded as failed. */
export function recordFailures<P>(route: (req: Request<P>, res: Response) => Promise<void>) {
  return async (req: Request<P>, res: Response): Promise<void> => {
    try {
      await route(req, res)
    } catch (error) {
      recordAction(res, { outcome: 'failed' })
      throw error
    }
  }
}

/** Records the result of a request. Without a call, the status of the response determines it. */
export function recordAction(res: ServerResponse, result: ActionResult): void {
  const record = pending.get(res)
  pending.delete(res)
  record?.(result)
}

/** The change that a request under `/admin` requests; `undefined` if it requests none. */
function actionOf({ method, path }: Request): { action: string; code?: string } | undefined {
  if (method === 'POST' && path === IMPORT_PATH) return { action: 'import' }
  const [, codePath = '', verb] = linkPath.exec(path) ?? []
  const isChange = method === (verb === undefined ? 'DELETE' : 'POST')
  if (codePath === '' || !isChange) return undefined
  const code = parseCodePath(codePath)
  return { action: verb ?? 'delete', ...(code !== undefined && { code }) }
}

/** The operator, as the client states it, and the address of the connection. */
export function clientOf(req: Request): {
  operator: string | undefined
  address: string | undefined
} {
  const operator = req.get('X-Operator') ?? ''
  const address = req.socket.remoteAddress
  return { operator: operatorSyntax.test(operator) ? operator : undefined, address }
}

const outcomes: Readonly<Record<number, ActionOutcome>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  503: 'store-unavailable',
}

function outcomeOf(status: number): ActionOutcome {
  if (status < 400) return 'success'
  return outcomes[status] ?? (status < 500 ? 'rejected' : 'failed')
}
