// The output of `standalone --greet`.
import { randomBytes } from 'node:crypto'

/** The listening address, which may differ from BASE_URL, and two commands to try. */
export function greetingOf(service: {
  readonly baseUrl: string
  readonly port: number
  readonly isKeyRequired: boolean
}): string {
  const { baseUrl, port, isKeyRequired } = service
  const origin = new URL(`http://localhost:${port}`).origin
  const alias = `try-${randomBytes(3).toString('hex')}`
  const body = JSON.stringify({ long_url: 'https://example.com/', custom_alias: alias })
  const keyHeader = isKeyRequired ? " -H 'X-API-Key: KEY'" : ''
  return [
    `Curtail listens on ${origin}. To try it, create a link and request it:`,
    '',
    `  curl -X POST ${origin}/v1/urls${keyHeader} -H 'Content-Type: application/json' -d '${body}'`,
    `  curl -i ${origin}/${alias}`,
    '',
    ...(isKeyRequired ? ['Replace KEY by an API key, as curtail key create prints it.', ''] : []),
    ...(new URL(baseUrl).origin === origin ? [] : [`Short links start with ${baseUrl}.`, '']),
    'Ctrl-C stops it.',
    '',
  ].join('\n')
}
