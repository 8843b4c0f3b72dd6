// Access to the admin API: by token; without a token, for programs on this machine, but not for web
// pages in a browser on this machine.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { RequestHandler } from 'express'
import { sendProblem } from '../problem.ts'

const loopbackAddress = /^(127\.|::ffff:127\.|::1$)/
const loopbackHost = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

/** Admits a request, or responds with 401 or 403. */
export function adminAccess(deps: { token: string | undefined; baseUrl: string }): RequestHandler {
  const { token, baseUrl } = deps
  const expected = token === undefined ? undefined : digest(token)
  return (req, res, next) => {
    if (expected !== undefined) {
      if (timingSafeEqual(digest(bearerOf(req.headers.authorization)), expected)) {
        next()
        return
      }
      const detail = 'The Authorization header must be Bearer and the token of ADMIN_TOKEN'
      const headers = { 'WWW-Authenticate': 'Bearer' }
      sendProblem(res, { name: 'unauthorized', detail, headers }, baseUrl)
      return
    }
    // A page of another site sends its Origin; after DNS rebinding the Host has another name.
    const isLocal = loopbackAddress.test(req.socket.remoteAddress ?? '')
    if (isLocal && req.headers.origin === undefined && loopbackHost.test(req.headers.host ?? '')) {
      next()
      return
    }
    const detail =
      'The admin API admits only programs on this machine: the client address and the Host must ' +
      'be loopback, and an Origin header is not allowed'
    sendProblem(res, { name: 'forbidden', detail }, baseUrl)
  }
}

/** The token that was sent, or '', which no token equals. */
function bearerOf(authorization = ''): string {
  return /^bearer +(.+)$/i.exec(authorization)?.[1] ?? ''
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
