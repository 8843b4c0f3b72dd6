// Who may use the admin API: the holder of the token; where there is none, programs on this
// machine, but no web page that a browser on it happens to show.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { RequestHandler } from 'express'
import { sendProblem } from '../problem.ts'

const loopbackHost = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

/** Lets a request through, or answers 401 or 403. */
export function adminAccess(deps: { token: string | undefined; baseUrl: string }): RequestHandler {
  const { token, baseUrl } = deps
  const wanted = token === undefined ? undefined : digest(token)
  return (req, res, next) => {
    if (wanted !== undefined) {
      if (timingSafeEqual(digest(bearerOf(req.headers.authorization)), wanted)) {
        next()
        return
      }
      const detail = 'The Authorization header must be Bearer and the token of ADMIN_TOKEN'
      const headers = { 'WWW-Authenticate': 'Bearer' }
      sendProblem(res, { name: 'unauthorized', detail, headers }, baseUrl)
      return
    }
    // A page elsewhere sends its Origin, and a name rebound to this machine is not ours.
    if (req.headers.origin === undefined && loopbackHost.test(req.headers.host ?? '')) {
      next()
      return
    }
    sendProblem(
      res,
      { name: 'forbidden', detail: 'Only programs on this machine may ask' },
      baseUrl,
    )
  }
}

/** The token that was sent; empty, which no token is, where there was none. */
function bearerOf(authorization = ''): string {
  return /^bearer +(.+)$/i.exec(authorization)?.[1] ?? ''
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
