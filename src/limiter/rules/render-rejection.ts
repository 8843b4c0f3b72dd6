// The log message of a rejection, and its reason as the xDS server receives it.
import { countFaults, renderFault } from '../../limits/rule-fault.ts'
import type { RuleFault } from '../../limits/rule.ts'

const REJECTION_BYTES_MAX = 4096

/** The log message when rules are rejected; `hasActive`: whether previous ones are active. */
export function rejectionMessage(hasActive: boolean): string {
  return hasActive
    ? 'rules rejected: the previous ones stay active'
    : 'rules rejected: no rules are active'
}

/** The first faults as lines, at most 4 KiB of UTF-8, and the number of the others. */
export function renderRejection(faults: readonly RuleFault[]): string {
  const lines: string[] = []
  let bytesLeft = REJECTION_BYTES_MAX
  for (const fault of faults) {
    const line = renderFault(fault)
    bytesLeft -= Buffer.byteLength(line) + 1
    if (bytesLeft < 0) {
      if (lines.length === 0) lines.push(truncated(line))
      const more = countFaults(faults) - lines.length
      return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
    }
    lines.push(line)
  }
  return lines.join('\n')
}

/** The start of a line, without a partial character. */
function truncated(line: string): string {
  const bytes = Buffer.from(line).subarray(0, REJECTION_BYTES_MAX - 3)
  return `${bytes.toString().replace(/\ufffd+$/, '')}...`
}
