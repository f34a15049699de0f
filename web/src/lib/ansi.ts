// Colours of a log line: text pieces with the class that shows them. Pure.

export interface Piece {
  text: string;
  style: string;
}

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

// In this order, as a terminal reads them: a sequence with parameters, of which those that end in "m" are colours; a
// text for the terminal (its title, a link), which BEL or ESC \ ends, and another sequence breaks off; a short
// sequence; a control character. What a line cuts off at its end is not shown.
const ESCAPE = new RegExp(
  [
    '\\u001b\\[([0-?]*)[ -/]*([@-~]|$)',
    '\\u001b[\\]PX^_][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\|(?=\\u001b)|$)',
    '\\u001b[ -/]*[0-~]',
    '[\\u0000-\\u0008\\u000b-\\u001f\\u007f]',
  ].join('|'),
  'g',
);

// The nearest of the named colours, which can be read on both backgrounds. Other colours may not.
function nearest(red: number, green: number, blue: number): string {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 48) return ''; // grey
  const middle = (most + least) / 2;
  const bits = (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
  return `ansi-${NAMES[bits]}`;
}

// The palette has eight colours, the same eight in bright, a cube of 6×6×6 colours, and greys.
function ofPalette(index: number): string {
  if (index < 16) return `ansi-${NAMES[index % 8]}`;
  if (index > 231) return '';
  const level = (step: number) => (step % 6 === 0 ? 0 : 55 + 40 * (step % 6));
  const at = index - 16;
  return nearest(level(Math.floor(at / 36)), level(Math.floor(at / 6)), level(at));
}

interface Look {
  bold: boolean;
  colour: string;
}

// The codes of one escape sequence. 38, 48 and 58 are followed by what describes a colour: "5;N" or "2;R;G;B".
function applyCodes(codes: number[], look: Look): void {
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 38 || code === 48 || code === 58) {
      const [kind, a = 0, b = 0, c = 0] = codes.slice(at + 1);
      if (code === 38) look.colour = kind === 5 ? ofPalette(a) : nearest(a, b, c);
      at += kind === 5 ? 2 : 4;
    } else if (code === 0) {
      look.bold = false;
      look.colour = '';
    } else if (code === 1) look.bold = true;
    else if (code === 22) look.bold = false;
    else if (code === 39) look.colour = '';
    else if (code >= 30 && code <= 37) look.colour = `ansi-${NAMES[code - 30]}`;
    else if (code >= 90 && code <= 97) look.colour = `ansi-${NAMES[code - 90]}`;
  }
}

// "1;31", or with colons where codes belong together: "38:5:N", "38:2:R:G:B", "38:2:SPACE:R:G:B".
function applyText(text: string, look: Look): void {
  if (!/^[\d;:]*$/.test(text)) return; // a terminal's own settings
  const codes = text.split(';').flatMap((one) => {
    const parts = one.split(':');
    if (parts.length > 1 && Number(parts[0]) < 30) return []; // the shape of a line below the text
    if (parts.length > 5) parts.splice(2, 1);
    return parts.map(Number);
  });
  applyCodes(codes, look);
}

export function pieces(line: string): Piece[] {
  const out: Piece[] = [];
  const look: Look = { bold: false, colour: '' };
  let at = 0;
  const add = (text: string) => {
    if (text) out.push({ text, style: `${look.colour}${look.bold ? ' ansi-bold' : ''}`.trim() });
  };
  for (const match of line.matchAll(ESCAPE)) {
    add(line.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === 'm') applyText(match[1] ?? '', look);
  }
  add(line.slice(at));
  return out;
}

export function plainText(line: string): string {
  return line.replace(ESCAPE, '');
}
