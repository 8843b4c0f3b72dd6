// Every form that proto3-JSON allows is parsed; every error names the path of its field.
import { expect, test } from '@jest/globals'
import { LimitRequestError } from '../../limits/verdict.ts'
import { parseJsonRequest } from './parse-json-request.ts'

const parse = (body: unknown) => parseJsonRequest(Buffer.from(JSON.stringify(body)))
const errorOf = (body: string | Buffer) => {
  try {
    parseJsonRequest(Buffer.from(body as string))
  } catch (error) {
    if (error instanceof LimitRequestError) return error.message
    throw error
  }
  throw new Error('it was parsed')
}

test('a request with every field is parsed', () => {
  const descriptor = {
    entries: [{ key: 'k', value: 'é' }, { key: 'l' }],
    limit: { requestsPerUnit: 5, unit: 'HOUR' },
    hitsAddend: '3',
    isNegativeHits: true,
  }
  expect(parse({ domain: 'd', descriptors: [descriptor, {}], hitsAddend: 7 })).toEqual({
    domain: 'd',
    hits: 7,
    descriptors: [
      {
        entries: [
          { key: 'k', value: 'é' },
          { key: 'l', value: '' },
        ],
        override: { requestsPerUnit: 5, unit: 'HOUR' },
        hits: -3,
      },
      { entries: [] },
    ],
  })
})

test('names as in the .proto, numbers as strings, and enums by number are accepted', () => {
  const limit = { requests_per_unit: '5', unit: 7 }
  const descriptors = [{ hits_addend: 0, is_negative_hits: false, limit }]
  expect(parse({ domain: 'd', hits_addend: '4294967295', descriptors })).toEqual({
    domain: 'd',
    hits: 2 ** 32 - 1,
    descriptors: [{ entries: [], override: { requestsPerUnit: 5, unit: 'WEEK' }, hits: 0 }],
  })
})

test('null means absent', () => {
  const descriptors = [{ entries: null, limit: null, hitsAddend: null, isNegativeHits: null }]
  expect(parse({ domain: null, descriptors, hitsAddend: null })).toEqual({
    domain: '',
    hits: 1,
    descriptors: [{ entries: [] }],
  })
  expect(parse({ descriptors: null })).toEqual({ domain: '', hits: 1, descriptors: [] })
})

test('hits beyond 32 bits are capped at 2^32 - 1, and a refund of 0 is 0', () => {
  const hits = (hitsAddend: unknown, isNegativeHits = false) =>
    parse({ descriptors: [{ hitsAddend, isNegativeHits }], hitsAddend: 9 }).descriptors[0]?.hits
  expect(hits('18446744073709551615')).toBe(2 ** 32 - 1)
  expect(hits(2 ** 64 - 1)).toBe(2 ** 32 - 1)
  expect(hits(2 ** 40, true)).toBe(1 - 2 ** 32)
  expect(hits(undefined, true)).toBe(-9)
  expect(Object.is(hits(0, true), 0)).toBe(true)
})

const many = Array.from({ length: 101 }, () => ({}))
const invalidBodies: Record<string, [string | Buffer, string]> = {
  'no body': ['', 'the body must be JSON: '],
  'not JSON': ['}', 'the body must be JSON: '],
  'not UTF-8': [Buffer.from([34, 255, 34]), 'the body must be UTF-8'],
  'a list': ['[]', 'the body must be an object: it is a list'],
  'a string': ['"x"', 'the body must be an object: it is "x"'],
  'an unknown member': ['{"domian": "x"}', 'domian is unknown'],
  'a member in both spellings': ['{"hitsAddend": 1, "hits_addend": 1}', 'hitsAddend occurs twice'],
  'a domain that is not a string': ['{"domain": 5}', 'domain must be a string of UTF-8: it is 5'],
  'a lone surrogate': [
    '{"domain": "\\ud800"}',
    'domain must be a string of UTF-8: it is "\\ud800"',
  ],
  'descriptors that are not a list': [
    '{"descriptors": {}}',
    'descriptors must be a list: it is an object',
  ],
  'a null descriptor': ['{"descriptors": [null]}', 'descriptors[0] must be an object: it is null'],
  'too many descriptors': [
    JSON.stringify({ descriptors: many }),
    'descriptors must be a list of at most 100',
  ],
  'a value that is not a string': [
    '{"descriptors": [{}, {"entries": [{"key": "k", "value": true}]}]}',
    'descriptors[1].entries[0].value must be a string of UTF-8: it is true',
  ],
  'hits below 0': [
    '{"hitsAddend": -1}',
    'hitsAddend must be a whole number from 0 to 4294967295: ',
  ],
  'hits of more than 32 bits': [
    '{"hitsAddend": 4294967296}',
    'hitsAddend must be a whole number from 0 to 4294967295: it is 4294967296',
  ],
  'a fractional hit': ['{"hitsAddend": 0.5}', 'hitsAddend must be a whole number'],
  'hits that are not a number': ['{"hitsAddend": "two"}', 'hitsAddend must be a whole number'],
  'hits of more than 64 bits': [
    '{"descriptors": [{"hitsAddend": "18446744073709551616"}]}',
    'descriptors[0].hitsAddend must be a whole number from 0 to 18446744073709551615',
  ],
  'a flag that is not a boolean': [
    '{"descriptors": [{"isNegativeHits": "true"}]}',
    'descriptors[0].isNegativeHits must be true or false: it is "true"',
  ],
  'a limit without unit': [
    '{"descriptors": [{"limit": {"requestsPerUnit": 1}}]}',
    'descriptors[0].limit.unit must be one of 1 SECOND, 2 MINUTE, 3 HOUR, 4 DAY, 5 MONTH, ' +
      '6 YEAR, 7 WEEK: it is absent',
  ],
  'a limit of an unknown unit': [
    '{"descriptors": [{"limit": {"unit": "UNKNOWN"}}]}',
    'it is "UNKNOWN"',
  ],
  'deeply nested lists': [`{"domain": ${'['.repeat(7000)}${']'.repeat(7000)}}`, 'it is a list'],
}
test.each(Object.entries(invalidBodies))('rejected: %s', (_, [body, message]) => {
  expect(errorOf(body)).toContain(message)
})
