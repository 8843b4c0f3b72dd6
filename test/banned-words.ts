// The words that this project does not use for what they meant here, and the field's words that it
// uses instead. They stand in no identifier, message, comment or document.

/** A pattern of whole words, in any case, and what to write instead. Identifiers are split. */
const BANNED: readonly (readonly [pattern: string, instead: string])[] = [
  // Programs do not speak, hear or know.
  ['tell(s|ing|ers?)?|told', 'report, return, log'],
  ['says?|said|saying|speaks?|spoken', 'report, state, render'],
  ['asks?|asked|asking|hears?|heard|believes?|believed', 'request, query, read'],
  ['owes?|owed', 'has requests in flight'],
  ['answer(s|ed|ing)?', 'response, result'],
  // A component is named by what it is.
  ['who|whom|whoever|nobody|somebody|everybody|anybody', 'the client, the replica, no node'],
  ['companions?', 'sidecar'],
  ['redirectors?|creators', 'redirect pods, create pods'],
  ["(?<!')parts?(?!-of)", 'component, dependency, segment'],
  ['chapters?', 'suite'],
  ['house|rooms?', 'architecture, module'],
  ['walls', 'import rules'],
  ['lanes?', 'fast path'],
  ['storms|(?<!run )storm (?!--)', 'fault test, soak test'],
  // States have names.
  ["away|(is|are) (there|back)|gone|'there'", 'unavailable, closed, deleted; present'],
  ['late|in time', 'timed out, within the deadline'],
  ['no more|cannot be had', 'no longer; failed to acquire'],
  ['sight|standing|trouble|news|rival|hindrance', 'observed state, status, problem, blocker'],
  ['slept|pulse|(?<!heart )beats?', 'stalled; heartbeat'],
  ['(in|into) force', 'active, loaded; take effect'],
  ['tied|findings?|remarks?', 'dependent; problem; warning'],
  // Actions have names.
  ['(?<!available |try )again|anew|once more', 'retry, restart, reload; available again'],
  ['repeat(s|ed|ing)? (a|the|its|each|every) request', 'retry'],
  ['put back|made good|mend(s|ed|ing)?|second reads?', 'restore, work around, retry'],
  ['(give|gives|gave|given|giving) up|lets? go', 'abort, release'],
  ['(leave|leaves|left) alone', 'the circuit breaker is open'],
  ['forg[eo]t(s|ten|ting|ters?)?', 'invalidate'],
  ['permits?', 'lease (of a cache fill)'],
  ['follow(s|ed|ing)? ((a|the|that|this|each|every) )?(links?|codes?)', 'resolve, redirect'],
  ['shorten(s|ed)?', 'create'],
  ['in vain', 'miss, not found'],
  ['seen links?|last seen|whom to believe', 'stale-if-error cache, stale target'],
  ['look-ups?', 'lookup'],
  ['charge(s|d)?|charging', 'count, consume'],
  ['(gives?|given|giving) back', 'refund, release, return'],
  ['remember(s|ed)?', 'store; deny cache'],
  ['words of (a|the) rules?', 'fields of a rule'],
  ['lets? (\\w+ ){0,3}(pass|through)', 'admit, allow'],
  [
    '(?<!connection.*)refus(e|es|ed|ing|al)(?!.*(connection| stream))',
    'reject a request, deny by a limit, refuse a connection',
  ],
  ['bears?|borne|patience|make ?up', 'tolerate, abuse budget'],
  ['(begin|begins|beginning|begun|began)(?<!BEGIN)', 'start'],
  ['(?<!writable |readable )ended', 'stopped, terminated, completed, aborted'],
  ['made|makes (an?|its|new)', 'created, generated, built'],
  ['only while', 'fence'],
  ['seen by|held against', 'verified, checked'],
  ['lest', 'so that … not'],
  // Terms of protocols and of data.
  ['heads? of (a|an|the|each|every|its) (request|response|call|message)|request heads?', 'headers'],
  ['settings kept|windows? opened', 'SETTINGS acknowledgement, WINDOW_UPDATE'],
  ['streams max|window bytes', 'max concurrent streams, initial window size'],
  ['texts|a text(?! (primary|node))', 'string'],
  ['heights? of|located', 'depth, node'],
]

const banned = BANNED.map(([pattern, instead]) => ({
  pattern: new RegExp(`(?<![A-Za-z])(${pattern})(?![A-Za-z])`, 'i'),
  instead,
}))

/** Every banned word in a file, as `line word: write instead`. Splits identifiers into words. */
export function findBannedWords(text: string): string[] {
  return text.split('\n').flatMap((line, i) => {
    const words = line.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll('_', ' ')
    return banned.flatMap(({ pattern, instead }) => {
      const found = pattern.exec(words)?.[0]
      return found === undefined ? [] : [`${String(i + 1)} ${found}: write ${instead}`]
    })
  })
}
