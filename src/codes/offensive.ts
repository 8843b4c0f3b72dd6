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
const digitLetters: Readonly<Record<string, string>> = {
  0: 'o',
  1: 'i',
  3: 'e',
  4: 'a',
  5: 's',
  7: 't',
}

/** Whether `code` reads as a word of abuse. */
export function isOffensive(code: string): boolean {
  const read = code.toLowerCase().replace(/[013457]/g, (digit) => digitLetters[digit] ?? digit)
  return stems.some((stem) => read.includes(stem) || read.replaceAll('i', 'l').includes(stem))
}
