// Reserved words, in upper or lower case; they are never codes. An alias cannot be revoked, so a
// word must be added here before the service uses it as a path.

/** First path segments that the service itself serves. src/http must serve no others. */
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

/** Matches every reserved word. The form of the home page uses its `.source` with the flag `i`. */
export const reservedWords = new RegExp(`^(?:${words.join('|')}|v[0-9]+)$`, 'i')

/** Whether `code` is a reserved word. */
export function isReserved(code: string): boolean {
  return reservedWords.test(code)
}
