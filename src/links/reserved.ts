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
] as const

const furtherWords = [
  ...['api', 'admin', 'app', 'static', 'health', 'healthz', 'livez', 'readyz', 'metrics'],
  ...['status', 'login', 'about', 'help', 'terms', 'abuse'],
]
const words = new Set<string>([...servedSegments, ...furtherWords])
const versionSegment = /^v[0-9]+$/

/** Whether `code` is a reserved word. */
export function isReserved(code: string): boolean {
  const lower = code.toLowerCase()
  return words.has(lower) || versionSegment.test(lower)
}
