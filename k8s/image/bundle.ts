// Bundles the roles into one folder of plain JavaScript that needs only Node.js: the entry file,
// one file for each role, and shared chunks. Files that the sources read at run time keep their
// paths below the folder. Does not build images.
import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile, type Plugin } from 'esbuild'
import { z } from 'zod'

/** The root folder of the checkout. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Packages that are copied unbundled, with their dependencies. Node.js hooks load the files of the
 * first two by URL, in processes with tracing. The third reads its large tables when it uses them;
 * in a bundle, each process would keep their source in memory.
 */
const UNBUNDLED = ['import-in-the-middle', 'require-in-the-middle', 'iconv-lite']

/** Files that sources read at run time. */
const ASSETS = /\.(lua|proto|yaml|css|ico)$|^web[/\\].*\.js$/

/** Files that packages read at run time, without their examples. */
const PROTO = /^(?!.*[/\\]sample[/\\]).*\.proto$/

/** Entry points, which other files load by name; curtail.js loads the roles. */
const ENTRY_POINTS: Readonly<Record<string, string>> = {
  curtail: 'src/main.ts',
  tracing: 'src/telemetry/tracing.ts',
  'rule-thread': 'src/limiter/rules/rule-thread.ts',
  'blocked-thread': 'src/resolve/blocked/blocked-thread.ts',
  'writer-thread': 'src/stores/sqlite/writer-thread.ts',
}

/** The start of every file: defines the paths by which bundled code finds its files. */
const BANNER = [
  "import { createRequire as __createRequire } from 'node:module'",
  'const require = __createRequire(import.meta.url)',
  "const __bundleUrl = new URL('.', import.meta.url).href",
  'const __bundleFolder = import.meta.dirname',
].join('\n')

/** The entry file: tracing first, because it only instruments modules that are loaded after it. */
const MAIN = ["await import('./tracing.js')", "await import('./curtail.js')", ''].join('\n')

const packageFile = z.object({
  name: z.string(),
  version: z.string(),
  license: z.string().optional(),
  dependencies: z.record(z.string(), z.string()).optional(),
})

/** The contents of a bundle. */
export interface Bundle {
  /** esbuild's metafile: the sources of each file; paths are relative to the checkout. */
  readonly metafile: Metafile
  /** Folders of the bundled packages, such as `node_modules/zod`. */
  readonly packages: readonly string[]
}

/** Changes the source at `place`, a path in the checkout, before esbuild bundles it. For tests. */
export type Rewrite = (text: string, place: string) => string

/** Writes the bundle to `folder`, which must be empty. Throws esbuild's errors. */
export async function bundle(folder: string, rewrite?: Rewrite): Promise<Bundle> {
  const readingPackages = new Set<string>()
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { ...ENTRY_POINTS },
    // esbuild does not write the files: source maps would contain the path of the build.
    outdir: join(root, 'bundle'),
    write: false,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    banner: { js: BANNER },
    // Names stay as they are, for stack traces.
    minifyWhitespace: true,
    minifySyntax: true,
    keepNames: true,
    legalComments: 'none',
    sourcemap: 'linked',
    sourcesContent: false,
    external: UNBUNDLED,
    plugins: [
      rewriteSourcePaths(rewrite),
      rewritePackagePaths(readingPackages),
      importHttpLazily(),
    ],
    metafile: true,
    logLevel: 'error',
  })
  for (const { path, contents } of outputFiles) {
    await writeFile(join(folder, relative(join(root, 'bundle'), path)), contents)
  }
  await writeFile(join(folder, 'main.js'), MAIN)
  await writePackageFile(folder)
  await copyFiles(folder, 'src', ASSETS)
  for (const place of readingPackages) await copyFiles(folder, place, PROTO)
  const bundled = Object.keys(metafile.inputs).filter((path) => path.startsWith('node_modules/'))
  const packages = new Set([...bundled.map(packageOf), ...(await copyUnbundled(folder))])
  return { metafile, packages: [...packages].sort() }
}

/** Rewrites `import.meta.url`, by which sources find their files, to a path in the bundle. */
function rewriteSourcePaths(rewrite: Rewrite = (text) => text): Plugin {
  const sources = join(root, 'src')
  return {
    name: 'rewrite-source-paths',
    setup(bundler) {
      bundler.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        if (!path.startsWith(sources)) return undefined
        const place = relative(root, path)
        const text = rewrite(await readFile(path, 'utf8'), place)
        return { contents: rewriteSource(text, place), loader: 'ts' }
      })
    },
  }
}

/** Replaces every `import.meta.url`. Throws an error for a thread that is not in the bundle. */
function rewriteSource(text: string, place: string): string {
  const thread = /new URL\('\.\/([\w-]+)\.ts', import\.meta\.url\)/g
  return text
    .replaceAll(thread, (_whole, name: string) => {
      if (!Object.hasOwn(ENTRY_POINTS, name)) throw new Error(`${place}: ${name} is not bundled`)
      return `new URL('${name}.js', __bundleUrl)`
    })
    .replaceAll('import.meta.url', `(__bundleUrl + ${JSON.stringify(place)})`)
}

/** Rewrites `__dirname` in packages in the same way; adds these packages to `found`. */
function rewritePackagePaths(found: Set<string>): Plugin {
  return {
    name: 'rewrite-package-paths',
    setup(bundler) {
      bundler.onLoad({ filter: /[/\\]node_modules[/\\].*\.[cm]?js$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8')
        if (!/\b__dirname\b/.test(text)) return undefined
        const place = relative(root, path)
        found.add(packageOf(place))
        const dirnameCode = `(__bundleFolder + ${JSON.stringify(`/${dirname(place)}`)})`
        return { contents: text.replaceAll(/\b__dirname\b/g, dirnameCode), loader: 'js' }
      })
    },
  }
}

/**
 * Imports node:http without its lazy exports. An `import` statement reads every export of a module,
 * and WebSocket, which no role uses, takes 12 MB.
 */
function importHttpLazily(): Plugin {
  const namespace = 'builtin'
  const names = Object.entries(Object.getOwnPropertyDescriptors(http))
    .filter(([, property]) => property.enumerable && 'value' in property)
    .map(([name]) => name)
  const contents = [
    "const http = process.getBuiltinModule('node:http')",
    'export default http',
    `export const { ${names.join(', ')} } = http`,
    '',
  ].join('\n')
  return {
    name: 'import-http-lazily',
    setup(bundler) {
      bundler.onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
        kind === 'import-statement' ? { path: 'http', namespace } : undefined,
      )
      bundler.onLoad({ filter: /./, namespace }, () => ({ contents }))
    },
  }
}

/** The folder of the package that a file below node_modules belongs to. */
function packageOf(place: string): string {
  const found = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(place)?.[0]
  if (found === undefined) throw new Error(`${place} is not in a package`)
  return found
}

async function copyFiles(folder: string, from: string, isWanted: RegExp): Promise<void> {
  for (const path of await readdir(join(root, from), { recursive: true })) {
    if (isWanted.test(path)) await cp(join(root, from, path), join(folder, from, path))
  }
}

/** Writes the package.json that version.ts reads and that marks the files as ES modules. */
async function writePackageFile(folder: string): Promise<void> {
  const text = await readFile(join(root, 'package.json'), 'utf8')
  const { name, version, license } = packageFile.parse(JSON.parse(text))
  const own = { name, version, license, type: 'module' }
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(own, undefined, 2)}\n`)
}

/** Copies the unbundled packages and their dependencies; resolves to their folders. */
async function copyUnbundled(folder: string): Promise<readonly string[]> {
  const wanted = [...UNBUNDLED]
  const copied = new Set<string>()
  for (const name of wanted) {
    const place = `node_modules/${name}`
    if (copied.has(place)) continue
    copied.add(place)
    await cp(join(root, place), join(folder, place), { recursive: true, filter: isCode })
    const text = await readFile(join(root, place, 'package.json'), 'utf8')
    wanted.push(...Object.keys(packageFile.parse(JSON.parse(text)).dependencies ?? {}))
  }
  return [...copied]
}

/** Whether a path of a package is needed to run it. */
function isCode(path: string): boolean {
  return !/\.(md|map|ts|mts|cts|csv|yml)$|[/\\](test|\.github)$/.test(path)
}
