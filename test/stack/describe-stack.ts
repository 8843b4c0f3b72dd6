// What `npm run stack` prints of a stack that is ready: each part, and how to use it and break it.
import type { Part } from './part.ts'

/** What it needs of a stack. */
export interface Described {
  readonly parts: readonly Pick<Part, 'name' | 'pid' | 'where'>[]
  readonly url: string
  readonly folder: string
  readonly adminToken: string
}

/** The lines; `restartCommand` restarts the parts that have died. */
export function describeStack(stack: Described, restartCommand: string): readonly string[] {
  const { parts, url, folder, adminToken } = stack
  const rows = parts.map(({ name, pid, where }) => [name, `pid ${String(pid())}`, where])
  const widths = [0, 1].map((at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const body = `-H 'Content-Type: application/json' -d '{"long_url":"https://example.com/"}'`
  return [
    ...rows.map((row) => {
      return `ok  ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}`
    }),
    '',
    `logs in ${folder}`,
    `Envoy listens at ${url}`,
    `  curl -i ${url}/v1/urls ${body}`,
    `  curl -i ${url}/CODE`,
    `admin API of create-1 and create-2: ADMIN_TOKEN=${adminToken}`,
    'to kill a part: kill -9 PID; to restart the parts that have died:',
    `  ${restartCommand}`,
  ]
}
