// Style as a test: sizes, names, words and comments, for every file of the project. No exceptions
// are listed here; a rule that cannot be kept is changed for all.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import ts from 'typescript'
import { findBannedWords } from './banned-words.ts'

const FILE_LINES_MAX = 300
const FUNCTION_LINES_MAX = 70
const LINE_CHARACTERS_MAX = 100

const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  encoding: 'utf8',
})
const paths = tracked.split('\n').filter((path) => existsSync(path)) // not the deleted ones
const files = paths.filter((path) =>
  /^(src|test|loadtest|envoy|k8s|charts)\/.*\.(ts|js)$/.test(path),
)
const sources = files.map((path) => ({ path, text: readFileSync(path, 'utf8') }))

/** Every place where `find` sees something wrong, as `path:line what`. */
function faults(find: (source: { path: string; text: string }) => string[]): string[] {
  return sources.flatMap((source) => find(source).map((fault) => `${source.path}:${fault}`))
}

function eachLine(text: string, fault: (line: string) => string | undefined): string[] {
  return text.split('\n').flatMap((line, i) => {
    const found = fault(line)
    return found === undefined ? [] : [`${String(i + 1)} ${found}`]
  })
}

function parse({ path, text }: { path: string; text: string }): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
}

function lineOf(file: ts.SourceFile, position: number): number {
  return file.getLineAndCharacterOfPosition(position).line + 1
}

test('there are files to look at', () => {
  expect(files.length).toBeGreaterThan(30)
})

describe('sizes', () => {
  test(`a file has at most ${String(FILE_LINES_MAX)} lines`, () => {
    const long = faults(({ text }) => {
      const lines = text.split('\n').length - 1
      return lines > FILE_LINES_MAX ? [`${String(lines)} lines`] : []
    })
    expect(long).toEqual([])
  })

  test(`a line has at most ${String(LINE_CHARACTERS_MAX)} characters`, () => {
    const long = faults(({ text }) =>
      eachLine(text, (line) =>
        line.length > LINE_CHARACTERS_MAX ? `${String(line.length)} characters` : undefined,
      ),
    )
    expect(long).toEqual([])
  })

  test(`a function has at most ${String(FUNCTION_LINES_MAX)} lines`, () => {
    const long = faults((source) => {
      const file = parse(source)
      const found: string[] = []
      const visit = (node: ts.Node) => {
        if (ts.isFunctionLike(node) && !isTestBody(node)) {
          const first = lineOf(file, node.getStart())
          const lines = lineOf(file, node.getEnd()) - first + 1
          if (lines > FUNCTION_LINES_MAX) found.push(`${String(first)} ${String(lines)} lines`)
        }
        ts.forEachChild(node, visit)
      }
      visit(file)
      return found
    })
    expect(long).toEqual([])
  })
})

/** The callback of `describe` contains many tests: it is not read as one function. */
function isTestBody(node: ts.Node): boolean {
  const call = node.parent
  return ts.isCallExpression(call) && call.expression.getText().startsWith('describe')
}

describe('names and words', () => {
  test('files are named in kebab-case, for the one thing they hold', () => {
    const allowed = /^[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.(ts|js)$/
    const drawers = /^(index|utils?|helpers?|common|shared|misc|lib|base|manager|impl)\./
    const odd = files.filter(
      (path) => !allowed.test(basename(path)) || drawers.test(basename(path)),
    )
    expect(odd).toEqual([])
  })

  test('what is to be done names its issue', () => {
    const mark = /\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))/
    const odd = faults(({ path, text }) =>
      path === 'test/tidy.test.ts' ? [] : eachLine(text, (line) => mark.exec(line)?.[0]),
    )
    expect(odd).toEqual([])
  })

  test('a code or a block is claimed; only cache fills and leadership are leased', () => {
    const odd = faults(({ path, text }) =>
      /^src\/(codes|create|pools|links)\/(?!link-cache[.])/.test(path)
        ? eachLine(text, (line) => /\bleas(e|ed|es|ing)\b/i.exec(line)?.[0])
        : [],
    )
    expect(odd).toEqual([])
  })

  test('every text file uses the words of the field', () => {
    expect(paths.flatMap((path) => wordFaults(path, () => readFileSync(path, 'utf8')))).toEqual([])
  })

  test.each([
    ['src/links/link.ts', 'const rulesToldBy = readRules()'],
    ['src/web/page.js', 'const AWAY_MS_MAX = 5'],
    ['src/stores/cassandra/watch-nodes.ts', "log.warn({ node }, 'Cassandra is away')"],
    ['src/telemetry/metrics.ts', "name: 'curtail_link_cache_away'"],
    ['src/stores/redis/token-bucket.lua', '-- calls that the store never answered'],
    ['src/web/page.css', '/* the answer */'],
    ['src/grpc/proto/envoy/service/ratelimit/v3/rls.proto', '// The answer.'],
    ['docs/runbooks/README.md', 'The pod tells Envoy that it is ready.'],
    ['CHANGELOG.md', '- one look-up'],
    ['charts/curtail/values.yaml', '  # who may scrape the metrics'],
    ['charts/curtail/templates/_limits.tpl', '{{/* who may scrape the metrics */}}'],
    ['charts/curtail/files/cassandra/logback.xml', '<!-- who logs -->'],
    ['k8s/cluster/config/containerd.toml', '# who pulls images'],
    ['k8s/cluster/node.sh', '# who starts the node'],
    ['k8s/cluster/go/cmd/kube/main.go', '// who starts the node'],
    ['k8s/image/bin/ratelimit', '# who starts the limiter'],
    ['.dependency-cruiser.cjs', '// who may import a store'],
    ['.ci/run', '# who runs the tests'],
    ['.gitignore', '# who writes it'],
    ['Dockerfile', '# who builds the image'],
  ])('a word of another language in %s is found', (path, text) => {
    expect(paths).toContain(path)
    expect(wordFaults(path, () => text)).toHaveLength(1)
  })

  test('no test is skipped, focused or left for later', () => {
    const mark = /\b(test|it|describe)\.(skip|only|todo)\b|\bx(it|test|describe)\(/
    const odd = faults(({ path, text }) =>
      path === 'test/tidy.test.ts' ? [] : eachLine(text, (line) => mark.exec(line)?.[0]),
    )
    expect(odd).toEqual([])
  })

  test('no rule of the tools is switched off in a file', () => {
    const mark = /@ts-(ignore|nocheck|expect-error)|eslint-disable|prettier-ignore/
    const odd = faults(({ path, text }) =>
      path === 'test/tidy.test.ts' ? [] : eachLine(text, (line) => mark.exec(line)?.[0]),
    )
    expect(odd).toEqual([])
  })
})

/** Binary files, a link to a folder, what others write, the list of banned words and its test. */
const withoutOurWords = [
  /\.(png|ico)$/,
  /^charts\/curtail-ratelimit$/,
  /^(LICENSE|package-lock\.json)$|\/go\.(mod|sum)$|\.sha256$/,
  /^test\/(banned-words|tidy\.test)\.ts$/,
]

/** The banned words in the file at `path`, as `path:line word: write instead`. */
function wordFaults(path: string, read: () => string): string[] {
  if (withoutOurWords.some((pattern) => pattern.test(path))) return []
  // The table of renamed public names has the old names.
  const text = path === 'CHANGELOG.md' ? read().replace(/^\|.*$/gm, '') : read()
  return findBannedWords(text).map((found) => `${path}:${found}`)
}

describe('comments', () => {
  test('a file opens with what it is for, in 1 to 5 lines', () => {
    const odd = faults(({ text }) => {
      const lines = text.split('\n')
      const end = lines.findIndex((line) => !line.startsWith('//'))
      return end >= 1 && end <= 5 ? [] : [`1 opens with ${String(end)} lines of comment`]
    })
    expect(odd).toEqual([])
  })

  test('every export says what it is', () => {
    const odd = faults((source) => {
      if (source.path.endsWith('.test.ts')) return []
      const file = parse(source)
      return file.statements.flatMap((statement) =>
        isDeclaredExport(statement) && ts.getJSDocCommentsAndTags(statement).length === 0
          ? [`${String(lineOf(file, statement.getStart()))} has no comment`]
          : [],
      )
    })
    expect(odd).toEqual([])
  })
})

function isDeclaredExport(statement: ts.Statement): boolean {
  if (!ts.canHaveModifiers(statement)) return false
  const modifiers = ts.getModifiers(statement) ?? []
  return modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
}
