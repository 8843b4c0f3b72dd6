// The first preload of the start commands: keeps compiled modules in node_modules. Later starts
// take less CPU time and memory, because Node.js does not load its TypeScript compiler. Plain
// JavaScript for the same reason. If the folder is not writable, Node.js continues without it.
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../node_modules/.cache/curtail', import.meta.url))
process.env['NODE_COMPILE_CACHE'] ??= folder // worker threads inherit it
enableCompileCache(process.env['NODE_COMPILE_CACHE'])
