// Codes that nobody should be sent by us: short words, also where digits stand for letters. Not a
// filter for what users write: custom aliases are their own words.

const stems = [
  ...[
    'anal',
    'anus',
    'arse',
    'ass',
    'bitch',
    'boob',
    'cock',
    'coon',
    'cum',
    'cunt',
    'dick',
    'dyke',
  ],
  ...[
    'fag',
    'fuck',
    'gook',
    'homo',
    'kike',
    'kkk',
    'nazi',
    'nigg',
    'paki',
    'penis',
    'piss',
    'poop',
  ],
  ...['porn', 'pussy', 'rape', 'sex', 'shit', 'slut', 'spic', 'tits', 'twat', 'wank', 'whore'],
]

/** What may stand for a letter, besides itself in either case. */
const lookalikes: Readonly<Record<string, string>> = {
  o: 'o0',
  i: 'i1',
  e: 'e3',
  a: 'a4',
  s: 's5',
  t: 't7',
  l: 'li1',
}

// One expression for all stems: minting asks it of every code.
const patterns = stems.map((stem) =>
  stem.replace(/[oieastl]/g, (letter) => `[${lookalikes[letter] ?? letter}]`),
)
const offensive = new RegExp(patterns.join('|'), 'i')

/** Whether `code` reads as a word of abuse. */
export function isOffensive(code: string): boolean {
  return offensive.test(code)
}
