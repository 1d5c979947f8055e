// Text that others wrote: made visible and harmless, never made into markup.

const COUNT = new Intl.NumberFormat("en");

/** Whether a code point gives commands instead of being seen: controls, direction overrides, invisible joiners of no script. */
function isCommand(code) {
  if (code < 32) return code !== 9 && code !== 10;
  return (code >= 127 && code < 160) || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
    code === 0x200e || code === 0x200f || code === 0x061c || code === 0xfeff || code === 0x2028 || code === 0x2029 ||
    (code >= 0xe0000 && code <= 0xe007f);
}

/** The text with every command written out as its code, so that it can be seen and does nothing. */
export function readable(text) {
  let seen = "";
  for (const character of String(text).replace(/\r\n/g, "\n")) {
    const code = character.codePointAt(0);
    seen += isCommand(code) ? `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩` : character;
  }
  return seen;
}

/** The text in one line. */
export const oneLine = (text) => readable(String(text).replace(/[ \t\r\n]+/g, " ").trim());

/** The beginning of a text, cut between characters as people see them. */
export function beginning(text, most) {
  const characters = Array.from(oneLine(text));
  return characters.length <= most ? characters.join("") : `${whole(characters.slice(0, most - 1).join(""))}…`;
}

/** The beginning of a text without what was cut in two at its end: half a code, a space. */
export const whole = (text) => text.replace(/⟨[^⟩]*$/u, "").trimEnd();

export const count = (number) => COUNT.format(number);

/** A number with its noun. */
export const counted = (number, one, several = `${one}s`) => `${count(number)} ${number === 1 ? one : several}`;

export const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
