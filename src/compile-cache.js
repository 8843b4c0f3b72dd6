// The first preload of the start commands: keeps compiled modules in node_modules. Node.js then
// starts in less CPU time, and its TypeScript compiler, which stays in memory, is never loaded: on
// the first start, another process compiles the modules. Plain JavaScript for the same reason. If
// the folder is not writable, Node.js continues without it.
import { spawnSync } from 'node:child_process'
import { globSync, readdirSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

const COMPILE_MS_MAX = 30_000
const folder = fileURLToPath(new URL('../node_modules/.cache/curtail', import.meta.url))
process.env['NODE_COMPILE_CACHE'] ??= folder // worker threads inherit it
enableCompileCache(process.env['NODE_COMPILE_CACHE'])
const directory = getCompileCacheDir()
if (isMainThread && directory !== undefined && readdirSync(directory).length === 0) compileAll()

/** Compiles all modules but runs none: the process exits in the first one that would run. */
function compileAll() {
  const root = new URL('..', import.meta.url)
  const modules = globSync('src/**/*.ts', {
    cwd: root,
    exclude: (path) => path.endsWith('.test.ts'),
  })
  const imports = modules.map((path) => `import ${JSON.stringify(new URL(path, root).href)}`)
  const program = ['import "data:text/javascript,process.exit()"', ...imports].join('\n')
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
  // Without the cache this process compiles what it needs itself, and reports what fails.
  spawnSync(process.execPath, args, { stdio: 'ignore', timeout: COMPILE_MS_MAX })
}
