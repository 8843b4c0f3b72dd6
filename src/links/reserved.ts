// The reserved words, which are never codes, in any case: the one list. An alias cannot be revoked,
// so a word is added here before the service serves it.

/** First path segments that the service serves itself. http/ may serve no other. */
export const servedSegments = [
  'v1',
  'docs',
  'problems',
  'openapi.json',
  'robots.txt',
  'favicon.ico',
  'assets',
] as const

const keptBack = [
  ...['api', 'admin', 'app', 'assets', 'static', 'health', 'healthz', 'livez', 'readyz', 'metrics'],
  ...['status', 'login', 'about', 'help', 'terms', 'abuse'],
]
const words = new Set<string>([...servedSegments, ...keptBack])
const versionSegment = /^v[0-9]+$/

/** Whether `code` is a reserved word. */
export function isReserved(code: string): boolean {
  const lower = code.toLowerCase()
  return words.has(lower) || versionSegment.test(lower)
}
