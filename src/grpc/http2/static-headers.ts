// HPACK's static table (RFC 7541, appendix A).

const names = [
  [':authority'],
  [':method', 'GET', 'POST'],
  [':path', '/', '/index.html'],
  [':scheme', 'http', 'https'],
  [':status', '200', '204', '206', '304', '400', '404', '500'],
  ['accept-charset'],
  ['accept-encoding', 'gzip, deflate'],
  ...[
    ...['accept-language', 'accept-ranges', 'accept', 'access-control-allow-origin', 'age'],
    ...['allow', 'authorization', 'cache-control', 'content-disposition', 'content-encoding'],
    ...['content-language', 'content-length', 'content-location', 'content-range'],
    ...['content-type', 'cookie', 'date', 'etag', 'expect', 'expires', 'from', 'host', 'if-match'],
    ...['if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since', 'last-modified'],
    ...['link', 'location', 'max-forwards', 'proxy-authenticate', 'proxy-authorization', 'range'],
    ...['referer', 'refresh', 'retry-after', 'server', 'set-cookie', 'strict-transport-security'],
    ...['transfer-encoding', 'user-agent', 'vary', 'via', 'www-authenticate'],
  ].map((name) => [name]),
]

/** Names and values in order; the first has index 1. */
export const staticHeaders: readonly (readonly [name: string, value: string])[] = names.flatMap(
  ([name = '', ...values]) =>
    (values.length === 0 ? [''] : values).map((value) => [name, value] as const),
)
