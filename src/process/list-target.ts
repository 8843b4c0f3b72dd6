// Changes of an operator list, such as the API keys: pure functions of the contents of all its
// documents. A document is a file or an object in Kubernetes. Lines that a change does not concern
// stay as they are, with their comments.
import { type ListLine, linesOf as linesOfFile, trimLine } from './list-lines.ts'
import { OperatorError } from './role.ts'

/** A document of a list. */
export interface ListDocument {
  /** In messages: the path of a file, or the kind and name of an object. */
  readonly name: string
  /** Empty if the file, or the data key of the object, does not exist. */
  readonly content: string
  /** The maximum size after lines are added; 0: no lines are added to it. */
  readonly bytesMax: number
}

/** The result of a change, and the new contents of the documents that it changes, by name. */
interface ListChange<T> {
  readonly contents: ReadonlyMap<string, string>
  readonly result: T
}

/** A change failed after it was written, or possibly written. */
export class UnknownOutcomeError extends OperatorError {}

/** Where a list is stored. Its methods may throw OperatorError. */
export interface ListTarget {
  readonly read: () => Promise<readonly ListDocument[]>
  /**
   * Applies one change at a time: a concurrent change waits, or its `decide` is called with what
   * the first change wrote. After a conflict, `decide` is called for each retry; its only side
   * effect may be to collect the results of all its calls.
   */
  readonly update: <T>(decide: (documents: readonly ListDocument[]) => ListChange<T>) => Promise<T>
  /** What to do if no document has space, such as `set X to a folder`. */
  readonly whenFull: string
}

/**
 * Adds lines, in order, to the first documents with enough space. Returns the new contents, or
 * `undefined` if not all of the lines fit.
 */
export function addLines(
  documents: readonly ListDocument[],
  lines: readonly string[],
): Map<string, string> | undefined {
  const contents = new Map<string, string>()
  let next = 0
  for (const { name, content, bytesMax } of documents) {
    const chunks = [content === '' || content.endsWith('\n') ? content : `${content}\n`]
    let bytes = Buffer.byteLength(chunks[0] ?? '')
    for (; next < lines.length; next++) {
      const chunk = `${lines[next] ?? ''}\n`
      bytes += Buffer.byteLength(chunk)
      if (bytes > bytesMax) break
      chunks.push(chunk)
    }
    if (chunks.length > 1) contents.set(name, chunks.join(''))
  }
  return next < lines.length ? undefined : contents
}

/** A line of a document. */
export interface DocumentLine extends ListLine {
  readonly document: string
}

/** Removes lines. Returns the new contents of the documents that had such a line. */
export function removeLines(
  documents: readonly ListDocument[],
  isRemoved: (line: DocumentLine) => boolean,
): Map<string, string> {
  const contents = new Map<string, string>()
  for (const { name: document, content } of documents) {
    const lines = content.split('\n')
    const kept = lines.filter((line, at) => {
      const number = at + 1
      return !isRemoved({ line: trimLine(line, number), document, number })
    })
    if (kept.length < lines.length) contents.set(document, kept.join('\n'))
  }
  return contents
}

/** The lines of all documents. */
export function* linesOf(documents: readonly ListDocument[]): Generator<DocumentLine> {
  for (const { name: document, content } of documents) {
    for (const line of linesOfFile(content)) yield { ...line, document }
  }
}

/** Decodes a document. Throws TypeError if it is not UTF-8, because a change would damage it. */
export function decodeDocument(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
}
