// The plain-text responses of the rate-limit service's apps, with 404 and 405.
import type { Express, Response } from 'express'

/** Sends a plain-text response. */
export function sendText(res: Response, status: number, body: string): void {
  res.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': Buffer.byteLength(body),
  })
  res.end(body)
}

/** Rejects other methods of the served paths with 405, and every other path with 404. */
export function rejectUnmatched(app: Express, allowed: Readonly<Record<string, string>>): void {
  for (const [path, allow] of Object.entries(allowed)) {
    app.route(path).all((_req, res) => {
      res.setHeader('Allow', allow)
      sendText(res, 405, 'Method Not Allowed\n')
    })
  }
  app.use((_req, res) => {
    sendText(res, 404, 'Not Found\n')
  })
}
