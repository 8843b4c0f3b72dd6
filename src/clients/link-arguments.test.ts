// The arguments of the `link` commands for many links: values, defaults, and the error for each
// mistake.
import { expect, test } from '@jest/globals'
import { isCode } from '../links/alias.ts'
import { parseHost } from '../links/target-url.ts'
import { UsageError } from '../process/role.ts'
import { hasBulkOption, isBulkVerb, parseBulkArgs } from './link-arguments.ts'

const parse = (line: string) => parseBulkArgs(line.split(' '), { isCode, parseHost })

const none = { creator: undefined, host: undefined, state: undefined }
const defaults = {
  ...{ selection: none, file: undefined, after: undefined, afterLine: 0, rate: 200 },
  ...{ isDryRun: false, isJson: false },
}

test.each([
  ['list', { rate: 5000 }],
  [
    'list --creator=-007 --target-host=EVIL.example. --state disabled --json',
    {
      selection: { creator: '-7', host: 'evil.example', state: 'disabled' },
      ...{ rate: 5000, isJson: true },
    },
  ],
  ['list --after=-ab --rate=7', { after: '-ab', rate: 7 }],
  [
    'disable --target-host bücher.example',
    { selection: { ...none, host: 'xn--bcher-kva.example' } },
  ],
  ['list --target-host com', { selection: { ...none, host: 'com' }, rate: 5000 }],
  ['disable --target-host localhost', { selection: { ...none, host: 'localhost' } }],
  ['disable --target-host 127.1', { selection: { ...none, host: '127.0.0.1' } }],
  ['disable --target-host [0::1]', { selection: { ...none, host: '[::1]' } }],
  [
    'disable --creator 9223372036854775807 --after x --dry-run',
    { selection: { ...none, creator: '9223372036854775807' }, after: 'x', isDryRun: true },
  ],
  ['disable --from-file - --after-line 12', { file: '-', afterLine: 12 }],
  ['enable --from-file=a --rate 1 --json', { file: 'a', rate: 1, isJson: true }],
])('%s', (line, expected) => {
  expect(parse(line)).toEqual({ ...defaults, ...expected })
})

const selectors = '--from-file, --creator, --target-host'
test.each([
  ['disable --dry-run', `requires exactly one of ${selectors}: none is given`],
  ['disable --creator 1 --target-host a', `of ${selectors}: --creator, --target-host are given`],
  ['disable --creator 1 --from-file a', `of ${selectors}: --from-file, --creator are given`],
  ['enable --dry-run', 'requires --from-file: none is given'],
  ['enable --creator 1', /^link enable takes --from-file, .*--json: .*Unknown option '--creator'$/],
  ['disable --creater 1', /^link disable takes --from-file, --creator, .*: .*'--creater'$/],
  ['list --dry-run', /^link list takes --creator, .*, --json: .*Unknown option '--dry-run'$/],
  ['list abc', /takes no CODE with these, but "abc" is given$/],
  ['disable abc --dry-run', /takes no CODE with these, but "abc" is given$/],
  ['list --creator', /Option '--creator <value>' argument missing$/],
  ['list --creator -5', /Option '--creator' argument is ambiguous$/],
  ['list --json=1', /Option '--json' does not take an argument$/],
  ['list --creator 1.5', '--creator must be a decimal integer: it is "1.5"'],
  ['list --creator=', '--creator must be a decimal integer: it is ""'],
  ['list --target-host=a/b', '--target-host must be a host such as evil.example: it is "a/b"'],
  ['list --target-host=https://a', 'it is "https://a"'],
  ['list --target-host=', 'it is ""'],
  ['disable --target-host=*.a.example', /must not be a pattern .*subdomains\): it is "\*\.a\.ex/],
  ['list --target-host=.a.example', 'must not be a pattern (a host includes all its subdomains)'],
  ['list --target-host=%2a.example', 'must not be a pattern'],
  ['list --target-host=a.example,b.example', '--target-host must be one host: it is "a.example,b'],
  ['list --target-host=a.example:8080', 'must not have a port (all ports are selected): it is'],
  ['list --target-host=a.example:80', 'must not have a port (all ports are selected): it is'],
  ['disable --target-host=[::1]:80', 'must not have a port'],
  ['disable --target-host=com.', 'must not be a host of one label, such as a top-level domain: it'],
  ['disable --creator 1 --creator=2', /^link disable takes .*: --creator is given more than once$/],
  ['list --json --json', '--json is given more than once'],
  [
    'list --state burnt',
    '--state must be one of active, expired, disabled, deleted: it is "burnt"',
  ],
  ['list --after=a/b', '--after must be a code, as an error prints it: it is "a/b"'],
  ['list --rate=0', '--rate must be an integer from 1 to 1000000: it is "0"'],
  ['disable --from-file a --after b', '--after does not apply to --from-file: use --after-line'],
  ['disable --creator 1 --after-line 2', '--after-line requires --from-file: use --after'],
  ['enable --from-file a --after-line=-1', '--after-line must be the number of a line: it is "-1"'],
])('%s is rejected with what is allowed', (line, message) => {
  expect(() => parse(line)).toThrow(UsageError)
  expect(() => parse(line)).toThrow(message)
})

test.each([
  ['disable --creator 1', true],
  ['disable --unknown', true],
  ['disable abc --json', false],
  ['disable -ab', false],
  ['disable -- --creator', false],
])('%s: options for many links: %p', (line, expected) => {
  expect(hasBulkOption(line.split(' '))).toBe(expected)
})

test.each([
  ['list', true],
  ['show', false],
  ['toString', false],
  [undefined, false],
])('%s may concern many links: %p', (verb, expected) => {
  expect(isBulkVerb(verb)).toBe(expected)
})
