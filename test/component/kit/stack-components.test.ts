// How `npm run stack` reports and restarts its components, with real processes, and its output.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, test } from '@jest/globals'
import { describeStack } from '../../stack/describe-stack.ts'
import { isAlive, startComponent, type Component } from '../../stack/component.ts'
import { type Supervisor, supervise } from '../../stack/supervise.ts'
import { waitFor } from '../../kit/wait-for.ts'

const opened: Component[] = []
let supervisor: Supervisor | undefined

afterEach(async () => {
  await supervisor?.stop()
  for (const part of opened.splice(0)) await part.stop()
})

/** A part that is a process and nothing else; `start` may refuse to start it. */
async function open(name: string, start: () => void = () => undefined): Promise<Component> {
  const part = await startComponent({
    name,
    where: 'http://127.0.0.1:1',
    begin: () => {
      start()
      const child = spawn('sleep', ['600'], { stdio: 'ignore' })
      const ended = once(child, 'exit')
      const stop = async () => {
        child.kill('SIGKILL')
        await ended
      }
      return Promise.resolve({ pid: child.pid ?? 0, stop })
    },
  })
  opened.push(part)
  return part
}

test('reports a dead component once with the command that restarts it', async () => {
  const said: string[] = []
  const parts = [await open('redirect-1'), await open('create-1')]
  const pids = parts.map((part) => part.pid())
  supervisor = supervise({ parts, how: 'kill -USR2 7', say: (line) => said.push(line) })
  await parts[0]?.kill()
  const report = `redirect-1 (pid ${String(pids[0])}) has died; to restart it: kill -USR2 7`
  await waitFor('the report', () => said.includes(report))
  await Promise.all([supervisor.restartDead(), supervisor.restartDead()])
  const now = parts.map((part) => part.pid())
  expect(now.map(isAlive)).toEqual([true, true])
  expect(now[1]).toBe(pids[1])
  expect(said).toEqual([
    report,
    'restarting redirect-1',
    `redirect-1 restarted, pid ${String(now[0])}`,
  ])
  await parts[0]?.kill()
  await waitFor('another report', () => said.length === 4)
})

test('a component that cannot be restarted is reported, and the others are restarted', async () => {
  const said: string[] = []
  let isBroken = false
  const broken = await open('cache', () => {
    if (isBroken) throw new Error('its port is in use')
  })
  const parts = [broken, await open('counters')]
  isBroken = true
  supervisor = supervise({ parts, how: '', say: (line) => said.push(line) })
  for (const part of parts) await part.kill()
  await supervisor.restartDead()
  expect(said).toContain('cache cannot be restarted: its port is in use')
  expect(parts.map((part) => isAlive(part.pid()))).toEqual([false, true])
})

test('what is printed: each part, the token of the admin API, CQL, and how to restart', () => {
  const parts = [
    { name: 'cassandra-1', pid: () => 11, where: 'CQL 127.0.1.11:9042, log /tmp/system.log' },
    { name: 'envoy-1', pid: () => 4000, where: 'http://127.0.0.1:8080' },
  ]
  const stack = { parts, url: 'http://127.0.0.1:8080', folder: '/tmp/x', adminToken: 'secret' }
  const lines = describeStack(stack, 'kill -USR2 99')
  expect(lines[0]).toBe('ok  cassandra-1  pid 11    CQL 127.0.1.11:9042, log /tmp/system.log')
  expect(lines).toContain('admin API of create-1 and create-2: ADMIN_TOKEN=secret')
  expect(lines.at(-1)).toBe('  kill -USR2 99')
})
