// The first preload of the start commands: keeps compiled modules in node_modules. Node.js then
// starts in less CPU time, and its TypeScript compiler, which stays in memory, is loaded only for
// modules that have changed since. If nothing is compiled yet, another process compiles all modules
// first. Plain JavaScript for the same reason. Without the folder, Node.js compiles as usual.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, globSync, readdirSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

const COMPILE_MS_MAX = 30_000
/** Set in the process that compiles: NODE_OPTIONS may preload this file there too. */
const IS_COMPILING = 'CURTAIL_IS_COMPILING'
const folder = fileURLToPath(new URL('../node_modules/.cache/curtail', import.meta.url))
process.env['NODE_COMPILE_CACHE'] ??= folder // worker threads inherit it
enableCompileCache(process.env['NODE_COMPILE_CACHE'])
if (isMainThread && process.env[IS_COMPILING] === undefined && isEmpty()) compileAll()

/** Whether the folder of this version of Node.js is empty, and can be written. */
function isEmpty() {
  const directory = getCompileCacheDir()
  if (directory === undefined) return false
  try {
    accessSync(directory, constants.W_OK)
    return readdirSync(directory).length === 0
  } catch {
    return false // this process then compiles what it needs itself
  }
}

/**
 * Compiles all modules but runs none: the process exits in the first one that would run. If that
 * fails, this process compiles what it needs itself, and reports the errors of these modules.
 */
function compileAll() {
  const root = new URL('..', import.meta.url)
  const modules = globSync('src/**/*.ts', {
    cwd: root,
    exclude: (path) => path.endsWith('.test.ts'),
  })
  const imports = modules.map((path) => `import ${JSON.stringify(new URL(path, root).href)}`)
  const input = ['import "data:text/javascript,process.exit()"', ...imports].join('\n')
  const env = { ...process.env, [IS_COMPILING]: 'true' }
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-']
  try {
    spawnSync(process.execPath, args, { input, env, stdio: 'pipe', timeout: COMPILE_MS_MAX })
  } catch {
    // No permission to start a process.
  }
}
