// The reference's configuration fixtures: for every file of its test/config, our check must return
// the result and the message that its config_test.go expects. The run parses that file for them.
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Outcome } from './outcome.ts'

const CHECK_MS_MAX = 30_000
/** The exit codes of the check. */
const VALID = 0
const FAULTY = 1

interface Expectation {
  readonly files: readonly string[]
  readonly mergesDomains: boolean
  /** The expected error; undefined if the files are valid. */
  readonly message: string | undefined
}

/** Checks all fixtures; `check` is the command line of our check, without the files. */
export async function checkFixtures(
  reference: string,
  check: readonly string[],
): Promise<Outcome[]> {
  const folder = join(reference, 'test/config')
  const expectations = await readExpectations(folder)
  return Promise.all(expectations.map((expected) => checkOne(folder, check, expected)))
}

/** The expected faults; all other files must be valid. */
async function readExpectations(folder: string): Promise<Expectation[]> {
  const source = await readFile(join(folder, 'config_test.go'), 'utf8')
  const calls = source.split('expectConfigPanic(').slice(2) // the first is its definition
  const faults = calls.map((call): Expectation => {
    const body = call.slice(0, call.indexOf('\n}'))
    const files = [...body.matchAll(/loadFile\("([^"]+)"\)/g)].map(([, file = '']) => file)
    const message = /^\s+"((?:[^"\\]|\\.)*)"\)$/m.exec(body)?.[1]
    if (files.length === 0 || message === undefined) {
      throw new Error(`config_test.go has an expectation that cannot be read: ${body}`)
    }
    return { files, mergesDomains: /\btrue\)/.test(body), message }
  })
  const faulty = new Set(faults.flatMap(({ files }) => files.slice(-1)))
  const all = (await readdir(folder)).filter((file) => file.endsWith('.yaml'))
  const valid = all.filter((file) => !faulty.has(file) || isMerged(file))
  const single = valid.map((file) => ({ files: [file], mergesDomains: false, message: undefined }))
  const merged = { files: all.filter(isMerged), mergesDomains: true, message: undefined }
  return [...faults, ...single, merged]
}

/** These files are valid alone and together, and faulty only if the same file is passed twice. */
function isMerged(file: string): boolean {
  return file.startsWith('merge_domain')
}

function checkOne(
  folder: string,
  check: readonly string[],
  expected: Expectation,
): Promise<Outcome> {
  const { files, mergesDomains, message } = expected
  const [command = '', ...args] = check
  const merging = mergesDomains ? ['--merge-domains'] : []
  const env = { PATH: process.env['PATH'] }
  const options = { cwd: folder, env, timeout: CHECK_MS_MAX }
  const name = `${files.join(' + ')}${mergesDomains ? ', merged' : ''}`
  return new Promise((resolve) => {
    const child = execFile(
      command,
      [...args, ...merging, ...files],
      options,
      (_error, stdout, stderr) => {
        const output = `${stdout}${stderr}`
        const exitCode = child.exitCode
        const isExpected =
          message === undefined
            ? exitCode === VALID
            : exitCode === FAULTY && isReported(output, files.at(-1) ?? '', message)
        const wanted = message === undefined ? 'valid' : `the fault: ${message}`
        const got = `expected ${wanted}\ngot exit code ${String(exitCode)}: ${output.trim()}`
        resolve({ name, hasPassed: isExpected, detail: isExpected ? wanted : got })
      },
    )
  })
}

/** Our check prints the line number between the file name and the reference's message. */
function isReported(output: string, file: string, message: string): boolean {
  const expectedText = message.startsWith(`${file}: `) ? message.slice(file.length + 2) : message
  return output.split('\n').some((line) => line.includes(file) && line.includes(expectedText))
}
