// The output of `standalone --greet`.
import { randomBytes } from 'node:crypto'

/** The listening address, which may differ from BASE_URL, and two commands to try. */
export function greetingOf({ baseUrl, port }: { baseUrl: string; port: number }): string {
  const origin = new URL(`http://localhost:${port}`).origin
  const alias = `try-${randomBytes(3).toString('hex')}`
  const body = JSON.stringify({ long_url: 'https://example.com/', custom_alias: alias })
  return [
    `Curtail listens on ${origin}. To try it, create a link and request it:`,
    '',
    `  curl -X POST ${origin}/v1/urls -H 'Content-Type: application/json' -d '${body}'`,
    `  curl -i ${origin}/${alias}`,
    '',
    ...(new URL(baseUrl).origin === origin ? [] : [`Short links start with ${baseUrl}.`, '']),
    'Ctrl-C stops it.',
    '',
  ].join('\n')
}
