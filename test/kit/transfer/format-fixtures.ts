// Files of each import format, written by hand in the form that each program's documentation or
// source shows, and the rows that they contain.
import type { LinkRow } from '../../../src/transfer/link-row.ts'

/** A file and what it contains. */
export interface FormatFixture {
  readonly format: string
  readonly about: string
  readonly file: string
  /** A row, or a pattern of its fault. */
  readonly rows: readonly (LinkRow | RegExp)[]
}

/** A row with defaults. */
function row(short_code: string, long_url: string, more: Partial<LinkRow> = {}): LinkRow {
  const none = { created_at: null, expires_at: null, creator_id: null, state: 'active' } as const
  return { short_code, long_url, ...none, ...more }
}

const CREATED = '2026-01-31T12:00:00.000Z'
const EXPIRES = '2099-12-31T23:59:59.000Z'

/** The table yourls_url: YOURLS, includes/functions-install.php; the columns by phpMyAdmin. */
const yourlsTable: FormatFixture = {
  format: 'yourls',
  about: 'the table yourls_url',
  file: [
    '"keyword","url","title","timestamp","ip","clicks"',
    '"ozh","https://example.com/a?b=1,""2""","A, title","2026-01-31 12:00:00","192.0.2.1",5',
    '"long-keyword-of-yourls","https://example.com/long",NULL,"2026-01-31 12:00:00","::1",0',
    '"lines","https://example.com/lines","two',
    'lines","2026-01-31 12:00:00","192.0.2.1","1"',
    '"zero","https://example.com/zero","","0000-00-00 00:00:00","192.0.2.1","1"',
    '',
  ].join('\n'),
  rows: [
    row('ozh', 'https://example.com/a?b=1,"2"', { created_at: CREATED }),
    row('long-keyword-of-yourls', 'https://example.com/long', { created_at: CREATED }),
    row('lines', 'https://example.com/lines', { created_at: CREATED }),
    /created_at must be a time/,
  ],
}

/** The plugin YOURLS-Import-Export by GautamGupta, fileio/csv.php. */
const yourlsPlugin: FormatFixture = {
  format: 'yourls',
  about: 'the plugin Import Export',
  file:
    'source,target,hits\r\n' +
    '/a/,https://example.com/a,5\r\n/b/,"https://example.com/?a,b",0\r\n',
  rows: [row('a', 'https://example.com/a'), row('b', 'https://example.com/?a,b')],
}

/** Shlink's web client, ExportShortUrlsBtn.tsx of shlink-web-component. */
const shlinkCsv: FormatFixture = {
  format: 'shlink',
  about: 'the CSV file of the web client',
  file:
    '\ufeffcreatedAt,domain,shortCode,shortUrl,longUrl,title,tags,visits\n' +
    '2026-01-31T13:00:00+01:00,s.test,abc12,https://s.test/abc12,https://example.com/1,,a|b,3\n' +
    '2026-01-31T12:00:00+00:00,s.test,my/slug,https://s.test/my/slug,https://example.com/2,"T",,0',
  rows: [
    row('abc12', 'https://example.com/1', { created_at: CREATED }),
    row('my/slug', 'https://example.com/2', { created_at: CREATED }),
  ],
}

const shlinkUrl = (code: string, more: object = {}) => ({
  shortCode: code,
  shortUrl: `https://s.test/${code}`,
  longUrl: `https://example.com/${code}`,
  dateCreated: '2026-01-31T12:00:00+00:00',
  visitsSummary: { total: 3, nonBots: 2, bots: 1 },
  tags: ['a', '}]"'],
  meta: { validSince: null, validUntil: null, maxVisits: null },
  domain: null,
  title: null,
  crawlable: false,
  forwardQuery: true,
  hasRedirectRules: false,
  ...more,
})
const shlinkPage = (...data: readonly object[]) => ({
  shortUrls: { data, pagination: { currentPage: 1, pagesCount: 2, totalItems: 6 } },
})

/** Shlink's REST API, list of short URLs: shlink-open-api-specs, v4.6.0. */
const shlinkJson: FormatFixture = {
  format: 'shlink',
  about: 'the pages of the REST API',
  file: [
    shlinkPage(
      shlinkUrl('s-one'),
      shlinkUrl('s-two', {
        meta: { validSince: CREATED, validUntil: '2100-01-01T00:59:59+01:00' },
      }),
      shlinkUrl('s-three', { meta: { maxVisits: 5 } }),
    ),
    shlinkPage(
      shlinkUrl('s-four', { meta: { validSince: EXPIRES } }),
      shlinkUrl('s-five', { hasRedirectRules: true }),
      shlinkUrl('s-six', { longUrl: 6 }),
    ),
  ]
    .map((page) => JSON.stringify(page))
    .join('\n'),
  rows: [
    row('s-one', 'https://example.com/s-one', { created_at: CREATED }),
    row('s-two', 'https://example.com/s-two', { created_at: CREATED, expires_at: EXPIRES }),
    /it has maxVisits/,
    /it has a validSince in the future/,
    /it has redirect rules/,
    /not a short URL of Shlink/,
  ],
}

const kuttLink = (address: string, more: object = {}) => ({
  id: 'f6bb1b3c-6a4e-4b6e-9d1a-1f2e3d4c5b6a',
  address,
  banned: false,
  created_at: CREATED,
  updated_at: CREATED,
  target: `https://example.com/${address}`,
  description: 'with "quotes" and [brackets]',
  expire_in: null,
  password: false,
  visit_count: 4,
  domain: null,
  link: { link: `kutt.test/${address}`, url: `https://kutt.test/${address}` },
  ...more,
})

/** Kutt's GET /api/v2/links: server/utils/utils.js (sanitize.link). SQLite's times have no zone. */
const kuttPages: FormatFixture = {
  format: 'kutt',
  about: 'the pages of GET /api/v2/links',
  file: JSON.stringify(
    {
      total: 4,
      limit: 50,
      skip: 0,
      data: [
        kuttLink('first', { expire_in: '2099-12-31 23:59:59' }),
        kuttLink('banned', { banned: true }),
        kuttLink('secret', { password: true }),
        { address: 'without a target' },
      ],
    },
    undefined,
    2,
  ),
  rows: [
    row('first', 'https://example.com/first', { created_at: CREATED, expires_at: EXPIRES }),
    row('banned', 'https://example.com/banned', { created_at: CREATED, state: 'disabled' }),
    /it has a password/,
    /not a link of Kutt/,
  ],
}

const bitlink = (id: string, more: object = {}) => ({
  created_at: '2026-01-31T12:00:00+0000',
  id,
  link: `https://${id}`,
  custom_bitlinks: [],
  long_url: 'https://example.com/bitly',
  title: 'A title',
  archived: false,
  tags: [],
  deeplinks: [{ app_uri_path: '/store', links: [{ os: 'android' }] }],
  references: { group: 'https://api-ssl.bitly.com/v4/groups/Ba1bc23dE4F' },
  ...more,
})

/** Bitly's API v4, "Retrieve Bitlinks by group". */
const bitlyPages: FormatFixture = {
  format: 'bitly',
  about: 'the pages of the Bitlinks of a group',
  file: JSON.stringify([
    bitlink('bit.ly/3abcDEF'),
    bitlink('bit.ly/2xyz', { custom_bitlinks: ['https://go.test/sale', 'https://go.test/2xyz'] }),
    bitlink('bit.ly/4old', { archived: true, is_deleted: true, link: undefined }),
    bitlink('bit.ly/5none', { long_url: null }),
  ]).replace(/^(.*)$/, '{"pagination":{"next":"","size":50},"links":$1}'),
  rows: [
    row('3abcDEF', 'https://example.com/bitly', { created_at: CREATED }),
    row('2xyz', 'https://example.com/bitly', { created_at: CREATED }),
    row('sale', 'https://example.com/bitly', { created_at: CREATED }),
    row('4old', 'https://example.com/bitly', { created_at: CREATED, state: 'disabled' }),
    /not a link of Bitly/,
  ],
}

/** The CSV file of Bitly's web app, with the columns of URLR's guide "Migration from Bitly". */
const bitlyCsv: FormatFixture = {
  format: 'bitly',
  about: 'the CSV file of the web app',
  file:
    'Link,Custom Link,Destination URL,Title\n' +
    'bit.ly/3csvDEF,,https://example.com/1,One\n' +
    'https://bit.ly/2csv,https://go.test/sale2,https://example.com/2,"Two, with a comma"\n' +
    ',,https://example.com/3,Three\n',
  rows: [
    row('3csvDEF', 'https://example.com/1'),
    row('2csv', 'https://example.com/2'),
    row('sale2', 'https://example.com/2'),
    /no short URL/,
  ],
}

/** The simple CSV file of docs/import.md. */
const csv: FormatFixture = {
  format: 'csv',
  about: 'all columns',
  file: [
    'long_url,short_code,state,creator_id,created_at,expires_at',
    'https://example.com/1,one,active,,2026-01-31T12:00:00Z,2099-12-31T23:59:59Z',
    'https://example.com/2,two,disabled,9223372036854775807,,',
    ',three,deleted,-1,,',
    'https://example.com/4,,,,,',
    'https://example.com/5,five,unknown,,,',
    'https://example.com/6,six,,9223372036854775808,,',
    'https://example.com/7,seven,,,2026-02-30T00:00:00Z,',
    'https://example.com/8,eight',
    'https://example.com/9,ni"ne,,,,',
  ].join('\r\n'),
  rows: [
    row('one', 'https://example.com/1', { created_at: CREATED, expires_at: EXPIRES }),
    row('two', 'https://example.com/2', { state: 'disabled', creator_id: '9223372036854775807' }),
    { ...row('three', '', { state: 'deleted', creator_id: '-1' }), long_url: null },
    /short_code must be/,
    /state must be one of/,
    /creator_id must be/,
    /created_at must be/,
    /line 9 has 2 fields, but the header has 6/,
    /line 10: a field that contains a quote must be quoted/,
  ],
}

/** The output of `curtail export`. */
const ndjson: FormatFixture = {
  format: 'ndjson',
  about: 'the links of an export',
  file: [
    JSON.stringify(row('n-one', 'https://example.com/1', { created_at: CREATED })),
    JSON.stringify({ ...row('n-two', ''), long_url: null, state: 'deleted' }),
    '{"short_code":"n-three","long_url":"https://example.com/3"}',
    '',
    '{"short_code":"four","long_url":"https://example.com/4","expire_at":null}',
    '["five"]',
    '{"short_code":"six","long_url":"https://exa',
  ].join('\n'),
  rows: [
    row('n-one', 'https://example.com/1', { created_at: CREATED }),
    { ...row('n-two', '', { state: 'deleted' }), long_url: null },
    row('n-three', 'https://example.com/3'),
    /"expire_at" is unknown/,
    /a row must be a JSON object/,
    /a row must be a JSON object/,
  ],
}

/** Every fixture. */
export const formatFixtures: readonly FormatFixture[] = [
  ...[yourlsTable, yourlsPlugin, shlinkCsv, shlinkJson, kuttPages, bitlyPages, bitlyCsv],
  ...[csv, ndjson],
]
