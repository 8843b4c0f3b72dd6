// Applies secrets to the connections of a client: to open ones by AUTH, to new ones by the driver's
// options. Changed credentials are tried first; while a node of Redis rejects them, the connection
// to it uses the previous ones.
import { isDeepStrictEqual } from 'node:util'
import { Cluster, type Redis } from 'ioredis'
import { within } from '../../resilience/deadline.ts'
import type { RedisAuth, RedisConnectionOptions, RedisSecrets } from './connection-options.ts'
import { maskError } from './mask-error.ts'
import { onEachNode, secretOptions } from './create-client.ts'

/** The secrets of one client. Each node uses the current credentials or the previous ones. */
export class AppliedSecrets {
  readonly #client: Redis | Cluster
  readonly #timeoutMs: number
  #secrets: RedisSecrets
  #previous: RedisAuth | undefined
  #nodesWithPrevious = new WeakSet<Redis>()
  /** Credentials with which Redis denied a command: at most the current and the previous ones. */
  readonly #denied = new Set<RedisAuth>()
  /** The credentials of the last handshake or of the last accepted AUTH. */
  readonly #used = new WeakMap<Redis, RedisAuth | undefined>()

  /** Observes the connections from their start. */
  constructor(client: Redis | Cluster, options: RedisConnectionOptions) {
    this.#client = client
    this.#timeoutMs = options.timeoutMs
    this.#secrets = secretsOf(options)
    onEachNode(client, (node) => {
      this.#applyTo(node)
      node.on('connecting', () => {
        this.#used.set(node, this.#authOf(node))
      })
    })
  }

  /** Replaces the secrets; returns whether they differ from those before. */
  change(read: RedisSecrets): boolean {
    let next = secretsOf(read)
    if (isDeepStrictEqual(next, this.#secrets)) return false
    if (isDeepStrictEqual(next.auth, this.#secrets.auth)) {
      next = { ...next, auth: this.#secrets.auth }
    } else {
      this.#previous = this.#secrets.auth
      this.#nodesWithPrevious = new WeakSet()
      this.#denied.clear()
    }
    this.#secrets = next
    for (const node of this.#nodes()) this.#applyTo(node)
    return true
  }

  /** Whether there were credentials before the last change. */
  hasPrevious(): boolean {
    return this.#previous !== undefined
  }

  /**
   * Authenticates every open connection with the current credentials, or with the previous ones if
   * Redis rejects those. Never rejects.
   */
  async authenticate() {
    const all = await Promise.all(this.#open().map((node) => this.#authenticateNode(node)))
    return {
      /** Redis's first rejection of the current credentials. */
      rejection: all.find(({ rejection }) => rejection !== undefined)?.rejection,
      /**
       * Whether a rejected command may be retried: false if Redis rejected the credentials on every
       * open connection. On a Cluster it is unknown which node rejected the command.
       */
      isAccepted: all.length === 0 || all.some(({ isAccepted }) => isAccepted),
    }
  }

  /** Whether a connection is open, and Redis has accepted the current credentials on every one. */
  isInUse(): boolean {
    const connected = this.#open()
    const usesCurrent = (node: Redis) => this.#used.get(node) === this.#secrets.auth
    return connected.length > 0 && connected.every(usesCurrent)
  }

  /** Whether a node uses the previous credentials, or will at its next connection. */
  isPreviousInUse(): boolean {
    return this.#nodes().some((node) => this.#nodesWithPrevious.has(node))
  }

  /** Whether a node's open connection uses credentials other than those selected for it. */
  isOutdated(node: Redis): boolean {
    return this.#used.get(node) !== this.#authOf(node)
  }

  /** Notes that Redis rejected a handshake. Returns whether it used the current credentials. */
  noteRejectedHandshake(node: Redis): boolean {
    const rejected = this.#used.get(node)
    const isCurrent = rejected === this.#secrets.auth
    // An earlier rejection may already have changed the credentials of the node.
    if (this.#previous !== undefined && rejected === this.#authOf(node)) {
      this.#setPrevious(node, isCurrent)
    }
    return isCurrent
  }

  /**
   * Notes that Redis denied a command. Without previous credentials, or if the open connections use
   * different ones, it notes nothing. Returns whether it noted a denial of the current credentials.
   */
  noteDeniedCommand(): boolean {
    const [auth, ...others] = new Set(this.#open().map((node) => this.#used.get(node)))
    if (auth === undefined || others.length > 0 || this.#previous === undefined) return false
    this.#denied.add(auth)
    return auth === this.#secrets.auth
  }

  /** Clears a noted denial, so that the current credentials are tried. Returns whether it did. */
  clearDenialOfCurrent(): boolean {
    const { auth } = this.#secrets
    return auth !== undefined && this.#denied.delete(auth)
  }

  isCurrentDenied(): boolean {
    const { auth } = this.#secrets
    return auth !== undefined && this.#denied.has(auth)
  }

  #nodes(): readonly Redis[] {
    return this.#client instanceof Cluster ? this.#client.nodes('all') : [this.#client]
  }

  #open(): readonly Redis[] {
    return this.#nodes().filter(({ status }) => status === 'ready')
  }

  #authOf(node: Redis): RedisAuth | undefined {
    return this.#nodesWithPrevious.has(node) ? this.#previous : this.#secrets.auth
  }

  #applyTo(node: Redis): void {
    Object.assign(node.options, secretOptions({ ...this.#secrets, auth: this.#authOf(node) }))
  }

  #setPrevious(node: Redis, isPrevious: boolean): void {
    if (isPrevious) this.#nodesWithPrevious.add(node)
    else this.#nodesWithPrevious.delete(node)
    this.#applyTo(node)
  }

  async #authenticateWith(node: Redis, auth: RedisAuth): Promise<Error | undefined> {
    const rejection = await sendAuth({ node, timeoutMs: this.#timeoutMs }, auth, () => {
      this.#used.set(node, auth)
    })
    return rejection === 'lost' ? undefined : rejection
  }

  async #authenticateNode(node: Redis) {
    const { auth } = this.#secrets
    const fallback = this.#previous
    if (auth === undefined) return { rejection: undefined, isAccepted: true }
    let rejection: Error | undefined
    if (!this.#denied.has(auth) || fallback === undefined || this.#denied.has(fallback)) {
      rejection = await this.#authenticateWith(node, auth)
      if (rejection === undefined || fallback === undefined) {
        if (this.#secrets.auth === auth) this.#setPrevious(node, false)
        return { rejection, isAccepted: rejection === undefined }
      }
    }
    if (this.#secrets.auth === auth) this.#setPrevious(node, true)
    return { rejection, isAccepted: (await this.#authenticateWith(node, fallback)) === undefined }
  }
}

/**
 * Sends AUTH. Resolves to Redis's rejection, if any, or to `lost` if no reply has arrived. Replies
 * to later commands may arrive together with that to AUTH: `onAccepted` is called before any of
 * them is handled, so that a denial is attributed to these credentials.
 */
async function sendAuth(
  { node, timeoutMs }: { readonly node: Redis; readonly timeoutMs: number },
  { username, password }: RedisAuth,
  onAccepted: () => void,
): Promise<Error | 'lost' | undefined> {
  const timeoutError = () => new Error('Redis did not respond to AUTH')
  const sent = username === undefined ? node.auth(password) : node.auth(username, password)
  const reply = sent.then(onAccepted)
  try {
    await within(timeoutMs, reply, timeoutError)
    return undefined
  } catch (error) {
    // A connection that is lost authenticates when it reconnects.
    if (!(error instanceof Error) || error.name !== 'ReplyError') return 'lost'
    return new Error(maskError(error).message) // not the driver's error: it contains the password
  }
}

function secretsOf({ auth, sentinelAuth, tls }: RedisSecrets): RedisSecrets {
  return { auth, sentinelAuth, tls }
}
