// Detects generated codes that contain a short offensive word, also with look-alike digits. Custom
// aliases are not filtered, because users choose them.

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

/** Characters that look like a letter; matching is case-insensitive. */
const lookalikes: Readonly<Record<string, string>> = {
  o: 'o0',
  i: 'i1',
  e: 'e3',
  a: 'a4',
  s: 's5',
  t: 't7',
  l: 'li1',
}

// One regular expression for all stems, because minting checks every code.
const patterns = stems.map((stem) =>
  stem.replace(/[oieastl]/g, (letter) => `[${lookalikes[letter] ?? letter}]`),
)
const offensive = new RegExp(patterns.join('|'), 'i')

/** Whether `code` contains an offensive word. */
export function isOffensive(code: string): boolean {
  return offensive.test(code)
}
