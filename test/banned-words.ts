// Words that the field does not use for what they meant here, each with the word to use instead.
// Only words that no file of src/ and docs/ has any more are listed: the list grows, never shrinks.

/** A pattern of whole words, and what to write in its place. */
export const bannedWords: readonly (readonly [pattern: string, instead: string])[] = [
  ['speak|spoken', 'use, support, send'],
  ['everybody|anybody', 'every client, anyone who may'],
  ['in vain', 'not found, without a result'],
  ['bears?|borne|patience', 'tolerate, abuse budget'],
  ['gives? back|given back', 'refund, release, return'],
  ['news', 'changes'],
  ['rival', 'conflicting owner'],
  ['hindrance', 'blocker'],
  ['trouble', 'problem'],
  ['pulse', 'heartbeat'],
  ['lanes?', 'fast path'],
  ['walls', 'import rules'],
  ['companions?', 'sidecar'],
  ['redirectors?', 'redirect pods'],
  ['is back', 'is available again, has recovered'],
  ['(in|into) force', 'active, loaded'],
  ['owes?', 'has requests in flight'],
  ['lest', 'so that … not'],
  ['put back', 'restore, revert, retry'],
  ['permits?', 'lease (of a cache fill)'],
]
