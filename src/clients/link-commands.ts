// The commands of the role `link`.
import { type Flag, jsonFlag, operatorFlag } from '../process/command-line.ts'

/** The default rates, in links per second, of `link list` and of changes of many links. */
export const RATE_DEFAULTS = { list: 5000, change: 200 } as const

const flags = {
  creator: { about: 'links of this creator; key list prints the ID', value: 'ID' },
  'target-host': { about: 'links to this host and its subdomains', value: 'HOST' },
  state: {
    about: 'links in this state',
    value: 'STATE',
    values: ['active', 'blocked', 'expired', 'disabled', 'deleted'],
  },
  after: { about: 'continues after the link with this code', value: 'CODE' },
  'from-file': { about: 'links of a file, or of the standard input', value: 'FILE|-' },
  'after-line': { about: 'continues after this line of the file', value: 'LINE' },
  rate: {
    about:
      `maximum number of links per second: by default ${RATE_DEFAULTS.list} for list, ` +
      `${RATE_DEFAULTS.change} for changes`,
    value: 'LINKS_PER_SECOND',
  },
  'dry-run': { about: 'changes nothing; prints the counts' },
} as const satisfies Record<string, Flag>

const { creator, 'target-host': targetHost, state, after, rate } = flags
const { 'from-file': fromFile, 'after-line': afterLine, 'dry-run': dryRun } = flags
const fileFlags = { 'from-file': fromFile, 'after-line': afterLine }
const changeFlags = { rate, 'dry-run': dryRun, ...operatorFlag, ...jsonFlag }

/** The commands, with their operands and options. */
export const linkCommands = {
  create: {
    about: 'creates a short link to LONG_URL, and prints it',
    operands: ['LONG_URL'],
    flags: {
      alias: { about: 'code to use instead of a generated one', value: 'ALIAS' },
      'ttl-days': { about: 'days until the link expires; by default, it does not', value: 'DAYS' },
      ...jsonFlag,
    },
  },
  list: {
    about: 'prints the links that all its options select',
    flags: { creator, 'target-host': targetHost, state, after, rate, ...jsonFlag },
  },
  show: { about: 'shows one link', operands: ['CODE'], flags: jsonFlag },
  disable: {
    about: 'disables one link, or those that an option selects',
    operands: ['[CODE]'],
    flags: { creator, 'target-host': targetHost, after, ...fileFlags, ...changeFlags },
  },
  enable: {
    about: 'enables one link, or those of a file',
    operands: ['[CODE]'],
    flags: { ...fileFlags, ...changeFlags },
  },
  delete: {
    about: 'deletes one link; this cannot be reverted',
    operands: ['CODE'],
    flags: { ...operatorFlag, ...jsonFlag },
  },
} as const
