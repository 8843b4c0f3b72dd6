// The lines of a list of blocked targets: which of them are entries, and which are faults.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ENTRY_LENGTH_MAX, parseBlockedEntry } from './blocked-entry.ts'

test.each([
  ['evil.example', 'evil.example'],
  ['  evil.example\r', 'evil.example'],
  ['\ufeffevil.example', 'evil.example'],
  ['evil.example # reported on Monday', 'evil.example'],
  ['evil.example # reported on Monday\r', 'evil.example'],
  ['EVIL.example.', 'evil.example'],
  ['evil.example:8443', 'evil.example'],
  ['https://evil.example', 'evil.example'],
  ['HTTP://evil.example:80', 'evil.example'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ['under_score.evil.example', 'under_score.evil.example'],
  ['0x7f.1', '127.0.0.1'],
  ['192.0.2.7', '192.0.2.7'],
  ['[2001:DB8::1]', '[2001:db8::1]'],
  ['[::ffff:192.0.2.7]', '192.0.2.7'],
  ['localhost', 'localhost'],
])('%j blocks a host with its subdomains', (line, host) => {
  expect(parseBlockedEntry(line)).toEqual({ host, path: undefined })
})

test.each([
  ['sites.example/bad', 'sites.example', '/bad'],
  ['https://sites.example:8443/bad', 'sites.example', '/bad'],
  ['http://sites.example/', 'sites.example', '/'],
  ['sites.example?page=bad', 'sites.example', '/?page=bad'],
  ['sites.example/bad?q=%7e&r=%2f', 'sites.example', '/bad?q=~&r=%2F'],
  ['sites.example/a/../%62ad', 'sites.example', '/bad'],
  ['sites.example\\bad', 'sites.example', '/bad'],
  ['sites.example//a/%40b%2fc', 'sites.example', '/a/@b/c'],
  ['sites.example/bäd', 'sites.example', '/b%C3%A4d'],
  ['[::1]:80/bad', '[::1]', '/bad'],
])('%j blocks URLs that start with it', (line, host, path) => {
  expect(parseBlockedEntry(line)).toEqual({ host, path })
})

const noEntries = ['', '   ', '\r', '# a comment', '   # evil.example', '\ufeff', '# a comment\r']
test.each([...noEntries, '\ufeff# a comment\r'])('%j is not an entry', (line) => {
  expect(parseBlockedEntry(line)).toBeUndefined()
})

test.each([
  ['com', /one label/],
  ['com.', /one label/],
  ['intranet/bad', /one label/],
  ['*.evil.example', /pattern: a host includes all its subdomains/],
  ['*', /pattern/],
  ['.evil.example', /pattern/],
  ['sites.example/bad*', /pattern: a path includes all/],
  ['evil.example other.example', /white space/],
  ['0.0.0.0 evil.example', /white space/],
  ['ftp://evil.example', /http:\/\//],
  ['user@evil.example', /user name/],
  ['sites.example/#bad', /fragment/],
  ['1.10.16.0/20', /range of addresses/],
  ['evil.example,', /characters that no host has/],
  ['evil.example,malware,2026-01-01', /characters that no host has/],
  ['"evil.example"', /characters that no host has/],
  ['http://', /no valid host/],
  ['/bad', /no valid host/],
  ['//evil.example', /no valid host/],
  ['.', /pattern/],
  ['evil.example:99999', /no valid host/],
  ['ev il', /white space/],
  ['e|vil.example', /no valid host/],
  [`${'a'.repeat(ENTRY_LENGTH_MAX)}.example`, /more than 2048 characters/],
  [`sites.example/${'a'.repeat(ENTRY_LENGTH_MAX)}`, /more than 2048 characters/],
])('%j is rejected', (line, fault) => {
  expect(parseBlockedEntry(line)).toEqual({ fault: expect.stringMatching(fault) })
})

test('a host results in the same entry with and without the URL parser', () => {
  const characters = fc.constantFrom('a', '1', '.', '-', '_', 'x', '0', 'n', 'A', '%')
  const hosts = fc.array(characters, { minLength: 1, maxLength: 12 }).map((list) => list.join(''))
  let entries = 0
  fc.assert(
    fc.property(hosts, (host) => {
      const direct = parseBlockedEntry(host)
      expect(parseBlockedEntry(`http://${host}`)).toEqual(direct)
      if (direct !== undefined && 'host' in direct) entries++
    }),
    { numRuns: 20_000 },
  )
  expect(entries).toBeGreaterThan(1000)
})
