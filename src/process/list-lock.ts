// The lock of a folder: a file in it, which contains its owner. While it exists, no other command
// changes a list in the folder. A lock whose process does not exist is taken over by exactly one
// command: the one that creates the claim file, whose name ends with the nonce of the lock.
import { randomUUID } from 'node:crypto'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import * as z from 'zod'
import { pause } from '../resilience/deadline.ts'
import { codeOf, orIfMissing } from './file-errors.ts'
import { OperatorError } from './role.ts'

const ownerSchema = z.object({
  pid: z.int().positive(),
  /** In a pod, the name of the pod. */
  host: z.string(),
  nonce: z.uuid(),
})
type Owner = z.infer<typeof ownerSchema>

/** The name starts with a dot: such a file is not read as a file of a list. */
const LOCK_NAME = '.curtail-list.lock'
const POLL_MS = 25

/** The locks of this process, by nonce: an earlier process may have had the same pid. */
const held = new Set<string>()

/** Locks a folder; resolves to a function that unlocks it. Throws OperatorError after `msMax`. */
export async function lockFolder(folder: string, msMax: number): Promise<() => Promise<void>> {
  const file = join(folder, LOCK_NAME)
  const owner: Owner = { pid: process.pid, host: hostname(), nonce: randomUUID() }
  const endMs = performance.now() + msMax
  held.add(owner.nonce)
  try {
    while (!((await create(file, owner)) || (await takeOver(file, owner)))) {
      if (performance.now() > endMs) throw await timeoutOf(file, msMax)
      await pause(POLL_MS)
    }
  } catch (error) {
    held.delete(owner.nonce)
    throw error
  }
  return async () => {
    try {
      if ((await readOwner(file))?.nonce === owner.nonce) await rm(file, { force: true })
    } finally {
      held.delete(owner.nonce)
    }
  }
}

async function timeoutOf(file: string, msMax: number): Promise<OperatorError> {
  const owner = await readOwner(file)
  const shown = owner === undefined ? '' : ` (process ${owner.pid} of host ${owner.host})`
  return new OperatorError(
    `another command${shown} has had the lock ${file} for ${msMax / 1000} s; ` +
      'if no command runs, delete that file',
  )
}

/** Resolves to false if the file exists. */
async function create(file: string, owner: Owner): Promise<boolean> {
  try {
    await using handle = await open(file, 'wx', 0o600)
    await handle.writeFile(JSON.stringify(owner))
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

async function takeOver(file: string, owner: Owner): Promise<boolean> {
  const previous = await readOwner(file)
  if (previous === undefined || isRunning(previous)) return false
  const claim = `${file}.${previous.nonce}`
  if (!(await create(claim, owner))) return false
  // If another command has replaced the lock in the meantime, this claim is for the previous lock.
  if ((await readOwner(file))?.nonce === previous.nonce) {
    await rename(claim, file)
    return true
  }
  await rm(claim)
  return false
}

/** `undefined` if the lock does not exist, or does not contain its owner yet. */
async function readOwner(file: string): Promise<Owner | undefined> {
  const content = await orIfMissing(readFile(file, 'utf8'), '')
  try {
    return ownerSchema.parse(JSON.parse(content))
  } catch {
    return undefined
  }
}

/** Whether the owner may be running. */
function isRunning({ pid, host, nonce }: Owner): boolean {
  if (host !== hostname()) return true
  if (pid === process.pid) return held.has(nonce)
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) !== 'ESRCH'
  }
}
