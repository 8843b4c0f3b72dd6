// The parser of a role's arguments: values, and the message of each mistake.
import { describe, expect, test } from '@jest/globals'
import { type Commands, jsonFlag, parseCommand } from './command-line.ts'
import { hintOf } from './nearest.ts'
import { UsageError } from './usage-error.ts'

const commands = {
  show: { about: '', operands: ['CODE'], flags: jsonFlag },
  list: {
    about: '',
    flags: {
      state: { about: '', value: 'STATE', values: ['active', 'disabled'] },
      rule: { about: '', value: 'RULE', isMultiple: true },
    },
  },
  add: {
    about: '',
    operands: ['NAME...'],
    flags: { by: { about: '', value: 'BY', isRequired: true } },
  },
  put: { about: '', operands: ['A', '[B]'] },
} as const satisfies Commands

const parse = (line: string) => parseCommand('role', commands, line.split(' '))

test.each([
  ['show a', { command: 'show', operands: ['a'], flags: { json: false } }],
  ['show --json a', { command: 'show', operands: ['a'], flags: { json: true } }],
  ['show -- --json', { command: 'show', operands: ['--json'], flags: { json: false } }],
  ['show -', { command: 'show', operands: ['-'], flags: { json: false } }],
  ['list', { command: 'list', operands: [], flags: { state: undefined, rule: [] } }],
  [
    'list --state active --rule=-a --rule=b',
    { command: 'list', operands: [], flags: { state: 'active', rule: ['-a', 'b'] } },
  ],
  ['add a b c --by=x', { command: 'add', operands: ['a', 'b', 'c'], flags: { by: 'x' } }],
  ['put a', { command: 'put', operands: ['a'], flags: {} }],
  ['put a b', { command: 'put', operands: ['a', 'b'], flags: {} }],
])('%s is parsed', (line, expected) => {
  expect(parse(line)).toEqual(expected)
})

test.each([
  [
    'shwo a',
    'role requires one of the commands show, list, add, put: it is "shwo"; did you mean show?',
  ],
  ['toString', 'role requires one of the commands show, list, add, put: it is "toString"; see'],
  ['--json show', 'it is "--json"; options follow the command'],
  ['show', 'role show requires CODE: none is given; see curtail role show --help'],
  ['show a b c', 'role show takes only CODE: "b" "c" is extra; see curtail role show --help'],
  ['list a', 'role list takes no arguments: "a" is extra'],
  ['put', 'role put requires A [B]: none is given'],
  ['show a --jsno=1', 'role show has no option --jsno: allowed are --json; did you mean --json?'],
  ['show a --toString', 'role show has no option --toString: allowed are --json; see'],
  [
    'show -ab',
    'has no option -ab: allowed are --json; a CODE that starts with - requires -- before',
  ],
  ['put a --x', 'role put has no option --x: it has none; see curtail role put --help'],
  ['show a --json=true', 'role show: --json takes no value: it is "true"'],
  ['show a --json --json', 'role show: --json is given 2 times: it is allowed once'],
  ['list --state', 'role list: --state requires a value, as in --state=STATE'],
  ['list --rule --state=active', 'requires =, as in --rule=--state=active'],
  [
    'list --state=activ',
    '--state must be one of active, disabled: it is "activ"; did you mean act',
  ],
  ['add a', 'role add requires --by=BY: none is given'],
])('%s is rejected', (line, message) => {
  expect(() => parse(line)).toThrow(UsageError)
  expect(() => parse(line)).toThrow(message)
})

test('a role without commands takes its arguments directly', () => {
  const own = { '': { about: '', operands: ['FILE'] } } as const
  expect(parseCommand('role', own, ['x'])).toEqual({ command: '', operands: ['x'], flags: {} })
  expect(() => parseCommand('role', own, [])).toThrow('role requires FILE: none is given')
})

describe('hintOf()', () => {
  test.each([
    ['lnik', '; did you mean link?'],
    ['limits', '; did you mean limit?'],
    ['exprot', '; did you mean export?'],
    ['', ''],
    ['nonsense', ''],
    ['xy', ''],
  ])('%j', (given, expected) => {
    expect(hintOf(given, ['link', 'limit', 'export'])).toBe(expected)
  })
})
