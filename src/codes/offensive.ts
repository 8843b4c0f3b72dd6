// Detects generated codes that contain a short offensive word, even if it is written with digits
// that look like letters. Custom aliases are not filtered, because users choose them.

const stems = [
  'anal anus arse ass bitch boob cock coon cum cunt dick dyke fag fuck gook homo kike kkk nazi',
  'nigg paki penis piss poop porn pussy rape sex shit slut spic tits twat wank whore',
].flatMap((line) => line.split(' '))

/** Each a letter, then the characters that look like it; matching is case-insensitive. */
const lookalikes = ['o0', 'i1', 'e3', 'a4', 's5', 't7', 'li1']

// One regular expression for all stems, because minting checks every code.
const patterns = stems.map((stem) =>
  stem.replace(/./g, (letter) => `[${lookalikes.find(([first]) => first === letter) ?? letter}]`),
)
const offensive = new RegExp(patterns.join('|'), 'i')

/** Whether `code` contains an offensive word. */
export function isOffensive(code: string): boolean {
  return offensive.test(code)
}
