// File descriptors of the services for reflection clients. Corrects proto-loader, whose type names
// and map entry names differ from protoc's, and which lists no imports. Touches no stream.
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader'

interface Field {
  readonly name: string
  typeName?: string
}
interface Message {
  name: string
  readonly field?: readonly Field[] | undefined
  readonly nestedType?: readonly Message[] | undefined
  readonly enumType?: readonly { readonly name: string }[] | undefined
  readonly options?: { readonly mapEntry?: boolean }
}
interface Method {
  readonly inputType: string
  readonly outputType: string
}
interface File {
  readonly name: string
  readonly package: string
  dependency?: string[]
  readonly messageType?: readonly Message[]
  readonly enumType?: readonly { readonly name: string }[]
  readonly service?: readonly { readonly method?: readonly Method[] }[]
}

/** The same definitions, with file descriptors that any client can link. */
export function withLinkedFiles(loaded: PackageDefinition): PackageDefinition {
  const codec = loadSync('google/protobuf/descriptor.proto')['google.protobuf.FileDescriptorProto']
  if (codec === undefined || !isMessage(codec)) {
    throw new Error('Cannot read file descriptors: proto-loader has no google.protobuf')
  }
  const files = new Map<string, File>()
  const types = Object.values(loaded).filter(isMessage)
  for (const bytes of new Set(types.flatMap((one) => one.fileDescriptorProtos))) {
    const file = codec.deserialize(bytes) as File
    for (const [, message] of messagesOf(file)) nameMapEntries(message)
    files.set(file.name, file)
  }
  const fileDescriptorProtos = link([...files.values()]).map((file) => codec.serialize(file))
  const linked = Object.entries(loaded).map(
    ([name, one]) => [name, isMessage(one) ? { ...one, fileDescriptorProtos } : one] as const,
  )
  return Object.fromEntries(linked)
}

/** Excludes services, which have only methods, and enums, which have no codec. */
function isMessage(one: PackageDefinition[string]): one is MessageTypeDefinition<object, object> {
  return 'deserialize' in one && Array.isArray(one.fileDescriptorProtos)
}

function link(files: readonly File[]): readonly File[] {
  /** The file of each message and enum by full name. */
  const fileOf = new Map<string, string>()
  for (const file of files) {
    for (const [scope, { nestedType = [], enumType = [] }] of messagesOf(file)) {
      for (const { name } of [...nestedType, ...enumType]) fileOf.set(`${scope}.${name}`, file.name)
    }
  }
  for (const file of files) {
    for (const [scope, { field = [] }] of messagesOf(file)) {
      for (const one of field.filter(({ typeName = '' }) => typeName !== '')) {
        one.typeName = resolveName(one.typeName ?? '', scope, fileOf)
      }
    }
    const imports = new Set(namesIn(file).map((name) => fileOf.get(name.slice(1)) ?? name))
    imports.delete(file.name)
    file.dependency = [...imports]
  }
  return files
}

/** The full names that a linked file references. */
function namesIn(file: File): string[] {
  const fields = messagesOf(file).flatMap(([, { field = [] }]) => field)
  const methods = (file.service ?? []).flatMap(({ method = [] }) => method)
  return [
    ...fields.flatMap(({ typeName = '' }) => (typeName === '' ? [] : [typeName])),
    ...methods.flatMap(({ inputType, outputType }) => [inputType, outputType]),
  ]
}

/** The file as a message, and all nested messages, each with its full name. */
function messagesOf(file: File): (readonly [string, Message])[] {
  const root = { name: file.package, nestedType: file.messageType, enumType: file.enumType }
  return withNested(file.package, root)
}

function withNested(name: string, message: Message): (readonly [string, Message])[] {
  const nested = (message.nestedType ?? []).flatMap((one) => {
    return withNested(`${name}.${one.name}`, one)
  })
  return [[name, message], ...nested]
}

/** Names each map entry after its field, as protoc does: SomeFieldEntry for some_field. */
function nameMapEntries({ field = [], nestedType: nested = [] }: Message): void {
  for (const entry of nested) {
    if (entry.options?.mapEntry !== true) continue
    const map = field.find(({ typeName: type }) => type === entry.name)
    if (map === undefined) continue
    const pascal = map.name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
    entry.name = `${pascal}Entry`
    map.typeName = entry.name
  }
}

/** Resolves a relative name to a full name, from the innermost scope outwards. */
function resolveName(name: string, scope: string, fileOf: ReadonlyMap<string, string>): string {
  if (name.startsWith('.')) return name
  const scopes = scope.split('.')
  for (let length = scopes.length; length >= 0; length -= 1) {
    const full = [...scopes.slice(0, length), name].join('.')
    if (fileOf.has(full)) return `.${full}`
  }
  throw new Error(`Cannot link ${scope}: no file defines the type ${name}`)
}
