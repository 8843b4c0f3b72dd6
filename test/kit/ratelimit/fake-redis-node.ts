// A connection of the Redis driver whose server accepts some passwords.
import { EventEmitter } from 'node:events'
import type { Redis } from 'ioredis'

/** Redis's rejection of credentials. */
function rejectionOf(password: string): Error {
  const error = new Error('WRONGPASS invalid username-password pair')
  return Object.assign(error, { name: 'ReplyError', command: { args: [password] } })
}

/** The connection. */
export class FakeRedisNode extends EventEmitter {
  status = 'ready'
  readonly options: Record<string, unknown> = {}
  /** The arguments of each AUTH. */
  readonly sent: string[][] = []
  /** The passwords that the server accepts; `undefined`: all. */
  accepted: readonly string[] | undefined
  /** Replaces the reply to AUTH. */
  reply: ((password: string) => Promise<'OK'>) | undefined

  auth(...args: string[]): Promise<'OK'> {
    this.sent.push(args)
    const password = args.at(-1) ?? ''
    if (this.reply !== undefined) return this.reply(password)
    const isAccepted = this.accepted?.includes(password) ?? true
    return isAccepted ? Promise.resolve('OK') : Promise.reject(rejectionOf(password))
  }

  /** Starts a handshake with the credentials of the options, and completes it. */
  connect(): void {
    this.emit('connecting')
    this.status = 'ready'
    this.emit('ready')
  }

  /** The password of the next handshake. */
  get password(): unknown {
    return this.options['password']
  }

  /** As the driver's type. */
  get redis(): Redis {
    return this as unknown as Redis
  }
}
