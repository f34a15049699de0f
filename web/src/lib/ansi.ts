// Colours of a log line: text pieces with the class that shows them. Pure.

export interface Piece {
  text: string;
  style: string;
}

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

const ESCAPE = /\u001b\[([0-9;]*)([A-Za-z])|\u001b\][^\u0007]*(?:\u0007|$)|[\u0000-\u0008\u000b-\u001f]/g;

export function pieces(line: string): Piece[] {
  const out: Piece[] = [];
  let bold = false;
  let colour = '';
  let at = 0;
  const add = (text: string) => {
    if (text) out.push({ text, style: `${colour}${bold ? ' ansi-bold' : ''}`.trim() });
  };
  for (const match of line.matchAll(ESCAPE)) {
    add(line.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] !== 'm') continue;
    for (const code of (match[1] || '0').split(';').map(Number)) {
      if (code === 0) {
        bold = false;
        colour = '';
      } else if (code === 1) bold = true;
      else if (code === 22) bold = false;
      else if (code === 39) colour = '';
      else if (code >= 30 && code <= 37) colour = `ansi-${NAMES[code - 30]}`;
      else if (code >= 90 && code <= 97) colour = `ansi-${NAMES[code - 90]}`;
    }
  }
  add(line.slice(at));
  return out;
}

export function plainText(line: string): string {
  return line.replace(ESCAPE, '');
}
