// Locks of a temporary folder: of this process, of one that has exited, and of other hosts.
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { lockFolder } from './list-lock.ts'

const LOCK = '.curtail-list.lock'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-lock-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const writeLock = (owner: object) =>
  writeFile(join(folder, LOCK), JSON.stringify({ nonce: randomUUID(), ...owner }))
const exited = () => {
  const { pid } = spawnSync('true')
  return { pid, host: hostname() }
}

test('a lock contains its owner, and excludes others until it is unlocked', async () => {
  const unlock = await lockFolder(folder, 0)
  const owner = { pid: process.pid, host: hostname() }
  expect(JSON.parse(await readFile(join(folder, LOCK), 'utf8'))).toMatchObject(owner)
  await expect(lockFolder(folder, 50)).rejects.toThrow(
    `another command (process ${process.pid} of host ${hostname()}) has had the lock`,
  )
  await unlock()
  expect(await readdir(folder)).toEqual([])
  await (
    await lockFolder(folder, 0)
  )()
})

test('a lock whose process does not exist is taken over, by one command at a time', async () => {
  for (let round = 0; round < 20; round++) {
    await writeLock(exited())
    let locked = 0
    const commands = Array.from({ length: 8 }, async () => {
      const unlock = await lockFolder(folder, 10_000)
      expect(++locked).toBe(1)
      await new Promise((resolve) => setTimeout(resolve, 1))
      locked--
      await unlock()
    })
    await Promise.all(commands)
    expect(await readdir(folder)).toEqual([])
  }
})

test('a lock of an earlier process with the same pid is taken over', async () => {
  await writeLock({ pid: process.pid, host: hostname() })
  await (
    await lockFolder(folder, 0)
  )()
  expect(await readdir(folder)).toEqual([])
})

test('a lock of a running process or of another host, or without an owner, is kept', async () => {
  const owners = [{ pid: process.ppid, host: hostname() }, { ...exited(), host: 'other' }, {}]
  for (const owner of owners) {
    await writeLock(owner)
    await expect(lockFolder(folder, 50)).rejects.toThrow(`has had the lock ${join(folder, LOCK)}`)
    expect(await readdir(folder)).toEqual([LOCK])
  }
})

test('a command deletes only its own lock', async () => {
  const unlock = await lockFolder(folder, 0)
  await writeLock({ pid: process.ppid, host: hostname() })
  await unlock()
  expect(await readdir(folder)).toEqual([LOCK])
})
