// What `npm run stack` prints when the stack is ready: its components, how to use and break them.
import type { Component } from './component.ts'

/** The fields of a stack that are printed. */
export interface DescribedStack {
  readonly components: readonly Pick<Component, 'name' | 'pid' | 'addresses'>[]
  readonly url: string
  readonly folder: string
  readonly adminToken: string
}

/** The lines to print; `restartCommand` restarts the components that exited. */
export function describeStack(stack: DescribedStack, restartCommand: string): readonly string[] {
  const { components, url, folder, adminToken } = stack
  const rows = components.map(({ name, pid, addresses }) => [
    name,
    `pid ${String(pid())}`,
    addresses,
  ])
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
    'to kill a component: kill -9 PID; to restart the components that exited:',
    `  ${restartCommand}`,
  ]
}
