// DATA_DIR contains the code secret: only its owner may read it, regardless of the umask. The role
// restricts modes that an earlier version or an operator left too permissive, and logs this.
import { chmod, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { createTempFolder } from '../../contract/open-sqlite.ts'
import { type RoleProcess, startRole } from '../../kit/processes/role-process.ts'

let folder: string
const cleanUps: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function newDataDir(): Promise<string> {
  folder = await createTempFolder()
  cleanUps.push(() => rm(folder, { recursive: true }))
  return join(folder, 'data')
}

/** Starts standalone with umask 0, which removes no permissions. */
async function start(dataDir: string): Promise<RoleProcess> {
  const role = await startRole({
    role: 'standalone',
    env: { PORT: '0', ADMIN_PORT: '0', DATA_DIR: dataDir },
    wrapper: ['sh', '-c', 'umask 0; exec "$0" "$@"'],
  })
  cleanUps.push(() => role.stop())
  return role
}

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o777).toString(8)
}

/** The modes of the files of a folder, by name. */
async function modesIn(dataDir: string): Promise<Record<string, string>> {
  const names = (await readdir(dataDir)).sort()
  const modes = names.map(async (name) => [name, await modeOf(join(dataDir, name))] as const)
  return Object.fromEntries(await Promise.all(modes))
}

/** The log lines about access by others. */
function accessLinesOf({ log }: RoleProcess) {
  return log
    .filter(({ msg }) => String(msg).includes('access by others'))
    .map(({ path, mode, reason, msg }) => ({ path, mode, reason, msg }))
}

const allPrivate = {
  'curtail.db': '600',
  'curtail.db-shm': '600',
  'curtail.db-wal': '600',
  'lock.db': '600',
}
const removed = 'access by others removed from DATA_DIR'

test('standalone creates the folder with mode 0700 and its files with 0600', async () => {
  const dataDir = await newDataDir()
  const role = await start(dataDir)
  expect(await modeOf(dataDir)).toBe('700')
  expect(await modesIn(dataDir)).toMatchObject(allPrivate)
  expect(accessLinesOf(role)).toEqual([])
})

test('standalone restricts and logs the modes of an existing folder and its files', async () => {
  const dataDir = await newDataDir()
  await (await start(dataDir)).stop()
  await chmod(dataDir, 0o755)
  await chmod(join(dataDir, 'curtail.db'), 0o644)
  const role = await start(dataDir)
  expect(await modeOf(dataDir)).toBe('700')
  expect(await modesIn(dataDir)).toMatchObject(allPrivate)
  expect(accessLinesOf(role)).toEqual([
    { path: dataDir, mode: '0755', msg: removed },
    { path: join(dataDir, 'curtail.db'), mode: '0644', msg: removed },
  ])
})

test('standalone keeps the mode of a folder with other files, and logs it', async () => {
  const dataDir = await newDataDir()
  await mkdir(dataDir)
  await chmod(dataDir, 0o755)
  await writeFile(join(dataDir, 'notes.txt'), 'mine')
  const role = await start(dataDir)
  expect(await modeOf(dataDir)).toBe('755')
  expect(await modesIn(dataDir)).toMatchObject(allPrivate)
  expect(accessLinesOf(role)).toEqual([
    {
      path: dataDir,
      mode: '0755',
      reason: "it also holds other files, such as 'notes.txt'",
      msg: 'cannot remove access by others from DATA_DIR',
    },
  ])
})
