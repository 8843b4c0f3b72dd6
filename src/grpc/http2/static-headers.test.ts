// HPACK's static table: a sample of its indices (RFC 7541, appendix A).
import { expect, test } from '@jest/globals'
import { staticHeaders } from './static-headers.ts'

test('the static table has 61 fields', () => {
  expect(staticHeaders).toHaveLength(61)
})

test.each([
  [1, ':authority', ''],
  [2, ':method', 'GET'],
  [3, ':method', 'POST'],
  [4, ':path', '/'],
  [7, ':scheme', 'https'],
  [8, ':status', '200'],
  [14, ':status', '500'],
  [15, 'accept-charset', ''],
  [16, 'accept-encoding', 'gzip, deflate'],
  [17, 'accept-language', ''],
  [28, 'content-length', ''],
  [31, 'content-type', ''],
  [38, 'host', ''],
  [58, 'user-agent', ''],
  [61, 'www-authenticate', ''],
])('its field %d is %s with the value %j', (index, name, value) => {
  expect(staticHeaders[index - 1]).toEqual([name, value])
})
