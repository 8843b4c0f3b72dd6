// Imports a batch of rows: some in parallel, all within one deadline. A row affects only later rows
// with the same code.
import { importLink, type ImportDeps } from './import-link.ts'
import type { ImportResult } from './import-result.ts'
import { codeIn, parseLinkRow } from './link-row.ts'

/** Imports rows, which are parsed JSON; resolves to one result per row, in order. */
export type BatchImporter = (rows: readonly unknown[]) => Promise<readonly ImportResult[]>

const PARALLEL_MAX = 16
/** Deadline of a batch; it is exceeded by at most a few store calls. */
const BATCH_MS_MAX = 8000

/** Creates the function that imports batches. */
export function createBatchImporter(deps: ImportDeps): BatchImporter {
  return async (rows) => {
    const deadlineMs = deps.monotonicMs() + BATCH_MS_MAX
    const results: ImportResult[] = []
    const groups = groupsOf(rows)
    const work = async () => {
      for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
        for (const i of group) {
          const result = await importValue(deps, rows[i], deadlineMs)
          results[i] = result
          if (result.result === 'failed') {
            for (const later of group) results[later] ??= failedAfter(result)
            break
          }
        }
      }
    }
    await Promise.all(Array.from({ length: PARALLEL_MAX }, work))
    return results
  }
}

/** The result of a row after a failed one with the same code, which must be imported first. */
function failedAfter({ short_code }: ImportResult): ImportResult {
  const detail = 'an earlier row with this code failed: retry'
  return { short_code, result: 'failed', code: null, detail }
}

/** The positions of the rows by code: rows with the same code are imported in their order. */
function groupsOf(rows: readonly unknown[]): number[][] {
  const groups = new Map<string | null, number[]>()
  for (const [i, row] of rows.entries()) {
    const code = codeIn(row)
    const group = groups.get(code)
    if (group === undefined) groups.set(code, [i])
    else group.push(i)
  }
  return [...groups.values()]
}

function importValue(
  deps: ImportDeps,
  value: unknown,
  deadlineMs: number,
): ImportResult | Promise<ImportResult> {
  const parsed = parseLinkRow(value)
  const short_code = codeIn(value)
  if ('fault' in parsed) return { short_code, result: 'invalid', code: null, detail: parsed.fault }
  if (deps.monotonicMs() < deadlineMs) return importLink(deps, parsed.row, deadlineMs)
  return { short_code, result: 'failed', code: null, detail: 'the batch took too long: retry' }
}
