// Runs one attack in its own process until its stdin closes: `ATTACK PORT`. It reopens closed
// connections, and connects from its own address.
import { connect, type Socket } from 'node:net'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import { attacks } from './grpc-attacks.ts'
import { frame, opening } from './grpc-frames.ts'

const ADDRESS = '127.0.0.2'
const REOPEN_MS = 50
/** Connections opened per interval; more would overflow the listen backlog. */
const OPEN_BATCH = 50
const OPEN_EVERY_MS = 5
const wide = Buffer.concat([
  opening,
  frame({ type: frameTypes.settings }, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])),
  frame({ type: frameTypes.windowUpdate }, 0, Buffer.from([0x7f, 0, 0, 0])),
])

const [name = '', port = ''] = process.argv.slice(2)
const attack = attacks[name]
if (attack === undefined) throw new Error(`Unknown attack ${name}`)
let wanted = attack.connections
let opened = 0
let sent = 0
const sockets = new Set<Socket>()

function send(socket: Socket): void {
  let stream = 3
  const write = () => {
    while (attack?.next !== undefined && !socket.destroyed) {
      const bytes = attack.next(stream)
      stream += 2 * (attack.streams ?? 0)
      sent += bytes.length
      if (!socket.write(bytes)) return
    }
  }
  socket.write(wide)
  if (attack?.first !== undefined) {
    sent += attack.first.length
    socket.write(attack.first)
  }
  socket.on('drain', write)
  write()
}

function open(): void {
  opened += 1
  const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: ADDRESS })
  sockets.add(socket)
  socket.on('connect', () => {
    send(socket)
  })
  socket.on('error', () => undefined) // 'close' follows
  socket.on('close', () => {
    sockets.delete(socket)
    setTimeout(() => (wanted += 1), REOPEN_MS)
  })
  if (attack?.reads === true) socket.resume()
}

setInterval(() => {
  for (let i = 0; i < OPEN_BATCH && wanted > 0; i += 1) {
    wanted -= 1
    open()
  }
}, OPEN_EVERY_MS)
process.stdin.resume().on('end', () => {
  process.stdout.write(`${JSON.stringify({ opened, open: sockets.size, sent })}\n`, () => {
    process.exit(0)
  })
})
