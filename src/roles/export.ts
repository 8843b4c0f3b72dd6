// `curtail export`: writes all links to stdout, through the admin API.
import { parseArgs } from 'node:util'
import { exportLinks } from '../clients/export-links.ts'
import { parseRate } from '../clients/parse-rate.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { CODE_LENGTH_MAX, isCode } from '../links/alias.ts'
import { createProgressLine } from '../process/progress-line.ts'
import { defineRole, UsageError } from '../process/role.ts'

const RATE_DEFAULT = 5000

/** `export`. */
export const role = defineRole({
  usage: 'export [--after=CODE] [--rate=LINKS_PER_SECOND]',
  about:
    'Writes all links to stdout: one JSON object per line, in the format of the admin API and\n' +
    'in the order of the store. Links that are created during the export may be missing in it.\n' +
    `--rate is the maximum number of links per second, ${RATE_DEFAULT} by default.\n` +
    'If the export fails, its error contains the option --after that continues it: the code of\n' +
    'the last link written.',
  settings: clientSettings,
  run: async ({ config, args, signal }) => {
    const { after, rate } = parseExportArgs(args)
    const { stderr } = process
    const progress = createProgressLine(stderr, { items: 'links exported', isShown: stderr.isTTY })
    try {
      await exportLinks({
        target: { url: config.ADMIN_URL, token: config.ADMIN_TOKEN },
        output: process.stdout,
        after,
        linksPerSecond: rate,
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

function parseExportArgs(args: readonly string[]): { after: string | undefined; rate: number } {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { after: { type: 'string' }, rate: { type: 'string' } },
    allowPositionals: true,
    strict: false,
  })
  const [unknown] = [
    ...Object.keys(values).filter((name) => name !== 'after' && name !== 'rate'),
    ...positionals,
  ]
  if (unknown !== undefined)
    throw new UsageError(`export takes only --after and --rate, not ${JSON.stringify(unknown)}`)
  const { after, rate = String(RATE_DEFAULT) } = values
  if (after !== undefined && !(typeof after === 'string' && isCode(after))) {
    const allowed = `1 to ${CODE_LENGTH_MAX} letters, digits, - and _`
    throw new UsageError(`--after must be a code, ${allowed}: it is ${JSON.stringify(after)}`)
  }
  return { after, rate: parseRate(rate) }
}
