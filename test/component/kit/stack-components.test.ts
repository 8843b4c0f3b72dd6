// The supervisor of `npm run stack`, which reports and restarts components, with real processes;
// the output of the stack.
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
  for (const component of opened.splice(0)) await component.stop()
})

/** A component that is only a process; the start fails if `beforeStart` throws. */
async function open(name: string, beforeStart: () => void = () => undefined): Promise<Component> {
  const component = await startComponent({
    name,
    addresses: 'http://127.0.0.1:1',
    start: () => {
      beforeStart()
      const child = spawn('sleep', ['600'], { stdio: 'ignore' })
      const exited = once(child, 'exit')
      const stop = async () => {
        child.kill('SIGKILL')
        await exited
      }
      return Promise.resolve({ pid: child.pid ?? 0, stop })
    },
  })
  opened.push(component)
  return component
}

test('the supervisor reports a dead component once, with the restart command', async () => {
  const lines: string[] = []
  const components = [await open('redirect-1'), await open('create-1')]
  const pids = components.map((component) => component.pid())
  supervisor = supervise({
    components,
    restartCommand: 'kill -USR2 7',
    log: (line) => lines.push(line),
  })
  await components[0]?.kill()
  const report = `redirect-1 (pid ${String(pids[0])}) exited; to restart it: kill -USR2 7`
  await waitFor('the report', () => lines.includes(report))
  await Promise.all([supervisor.restartDead(), supervisor.restartDead()])
  const now = components.map((component) => component.pid())
  expect(now.map(isAlive)).toEqual([true, true])
  expect(now[1]).toBe(pids[1])
  expect(lines).toEqual([
    report,
    'restarting redirect-1',
    `redirect-1 restarted, pid ${String(now[0])}`,
  ])
  await components[0]?.kill()
  await waitFor('another report', () => lines.length === 4)
})

test('the supervisor reports a component that it cannot restart, and restarts others', async () => {
  const lines: string[] = []
  let isBroken = false
  const broken = await open('cache', () => {
    if (isBroken) throw new Error('its port is in use')
  })
  const components = [broken, await open('counters')]
  isBroken = true
  supervisor = supervise({ components, restartCommand: '', log: (line) => lines.push(line) })
  for (const component of components) await component.kill()
  await supervisor.restartDead()
  expect(lines).toContain('cache cannot be restarted: its port is in use')
  expect(components.map((component) => isAlive(component.pid()))).toEqual([false, true])
})

test('the stack prints each component, the admin token, CQL, and the restart command', () => {
  const components = [
    { name: 'cassandra-1', pid: () => 11, addresses: 'CQL 127.0.1.11:9042, log /tmp/system.log' },
    { name: 'envoy-1', pid: () => 4000, addresses: 'http://127.0.0.1:8080' },
  ]
  const stack = { components, url: 'http://127.0.0.1:8080', folder: '/tmp/x', adminToken: 'secret' }
  const lines = describeStack(stack, 'kill -USR2 99')
  expect(lines[0]).toBe('ok  cassandra-1  pid 11    CQL 127.0.1.11:9042, log /tmp/system.log')
  expect(lines).toContain('admin API of create-1 and create-2: ADMIN_TOKEN=secret')
  expect(lines.at(-1)).toBe('  kill -USR2 99')
})
