// The arguments of the `link` commands for many links: values, defaults, and the error for each
// mistake.
import { expect, test } from '@jest/globals'
import { isCode } from '../links/alias.ts'
import { parseHost } from '../links/target-url.ts'
import { UsageError } from '../process/role.ts'
import { parseCommand } from '../process/command-line.ts'
import { parseBulk } from './link-arguments.ts'
import { linkCommands } from './link-commands.ts'

const { list, disable, enable } = linkCommands
const parse = (line: string) => {
  const args = parseCommand('link', { list, disable, enable }, line.split(' '))
  return parseBulk(args, { isCode, parseHost })
}

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
])('%s is parsed', (line, expected) => {
  const [verb] = line.split(' ')
  expect(parse(line)).toEqual({ ...defaults, verb, ...expected })
})

test.each(['disable abc', 'enable abc --json'])('%s concerns one link', (line) => {
  expect(parse(line)).toBeUndefined()
})

const selectors = '--from-file, --creator, --target-host'
test.each([
  ['disable --dry-run', `or, for many links, exactly one of ${selectors}: none is given`],
  ['disable', `requires a CODE, or, for many links, exactly one of ${selectors}: none is given`],
  ['disable --creator 1 --target-host a', `of ${selectors}: --creator, --target-host are given`],
  ['disable --creator 1 --from-file a', `of ${selectors}: --from-file, --creator are given`],
  ['enable --dry-run', 'a CODE, or, for many links, --from-file: none is given'],
  ['enable --creator 1', /^link enable has no option --creator: allowed are --from-file, .*--json/],
  ['disable --creater 1', /has no option --creater: .*; did you mean --creator\?$/],
  ['list --dry-run', /^link list has no option --dry-run: allowed are --creator, .*, --json/],
  ['list abc', 'link list takes no arguments: "abc" is extra'],
  ['disable abc --dry-run', 'takes a CODE or --dry-run, not both: the CODE is "abc"'],
  ['list --creator', 'link list: --creator requires a value, as in --creator=ID'],
  ['list --creator -5', 'requires =, as in --creator=-5'],
  ['list --json=1', 'link list: --json takes no value: it is "1"'],
  ['list --creator 1.5', '--creator must be a decimal integer: it is "1.5"; curtail key list pr'],
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
  ['disable --creator 1 --creator=2', '--creator is given 2 times: it is allowed once'],
  ['list --json --json', '--json is given 2 times'],
  [
    'list --state burnt',
    '--state must be one of active, blocked, expired, disabled, deleted: it is "burnt"',
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
