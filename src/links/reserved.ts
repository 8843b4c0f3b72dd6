// Reserved words, in upper or lower case; they are never codes. An alias cannot be revoked, so a
// word must be added here before the service serves it.

/** First path segments that the service itself serves. http/ must not serve others. */
export const servedSegments = [
  'v1',
  'docs',
  'problems',
  'openapi.json',
  'robots.txt',
  'favicon.ico',
  'assets',
  'abuse',
  '.well-known',
] as const

const furtherWords = [
  ...['api', 'admin', 'app', 'static', 'health', 'healthz', 'livez', 'readyz', 'metrics'],
  ...['status', 'login', 'about', 'help', 'terms'],
]
const words = [...servedSegments, ...furtherWords].map((word) => word.replaceAll('.', '\\.'))

/** Matches every reserved word. Pages use its source, with the same flag. */
export const reservedWords = new RegExp(`^(?:${words.join('|')}|v[0-9]+)$`, 'i')

/** Whether `code` is a reserved word. */
export function isReserved(code: string): boolean {
  return reservedWords.test(code)
}
