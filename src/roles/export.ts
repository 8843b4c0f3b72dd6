// `curtail export`: writes all links to stdout, through the admin API.
import { exportLinks } from '../clients/export-links.ts'
import { parseRate } from '../clients/parse-rate.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { CODE_LENGTH_MAX, isCode } from '../links/alias.ts'
import type { Parsed } from '../process/command-line.ts'
import { createProgressLine } from '../process/progress-line.ts'
import { defineRole, UsageError } from '../process/role.ts'

const RATE_DEFAULT = 5000

const commands = {
  '': {
    about: '',
    flags: {
      after: { about: 'continues after this code', value: 'CODE' },
      rate: {
        about: `maximum number of links per second, ${RATE_DEFAULT} by default`,
        value: 'LINKS_PER_SECOND',
      },
      json: { about: 'has no effect: the output is always JSON, one object per line' },
    },
  },
} as const

/** `export`. */
export const role = defineRole({
  name: 'export',
  about:
    'Writes all links to stdout: one JSON object per line, in the format of the admin API and\n' +
    'in the order of the store. Links that are created during the export may be missing in it.\n' +
    'If the export fails, its error contains the option --after that continues it: the code of\n' +
    'the last link written.',
  commands,
  settings: clientSettings,
  check: parseExportArgs,
  run: async ({ config, args, signal }) => {
    const { after, linksPerSecond } = parseExportArgs(args)
    const { stderr } = process
    const progress = createProgressLine(stderr, { items: 'links exported', isShown: stderr.isTTY })
    try {
      await exportLinks({
        target: { url: config.ADMIN_URL, token: config.ADMIN_TOKEN },
        output: process.stdout,
        after,
        linksPerSecond,
        signal,
        onPage: progress.update,
        onRetry: (cause) => {
          progress.warn(`curtail: ${cause.message}; retrying`)
        },
      })
    } finally {
      progress.complete()
    }
    return { exitCode: 0 }
  },
})

/** Throws UsageError. */
function parseExportArgs({ flags }: Parsed<typeof commands>) {
  const { after, rate = String(RATE_DEFAULT) } = flags
  if (after === undefined || isCode(after)) return { after, linksPerSecond: parseRate(rate) }
  const allowed = `1 to ${CODE_LENGTH_MAX} letters, digits, - and _`
  throw new UsageError(`--after must be a code, ${allowed}: it is ${JSON.stringify(after)}`)
}
