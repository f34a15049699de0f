// JSON as YAML, the way kubectl prints it. Pure.

const PLAIN = /^[A-Za-z_./][\w ./@:+=,()%~-]*$/;
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i;
const NUMBER = /^[-+]?[.\d]/;

function scalar(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value !== 'string') return String(value);
  const plain = PLAIN.test(value) && !RESERVED.test(value) && !NUMBER.test(value) && !/: |\s#|:$|\s$/.test(value);
  return plain ? value : JSON.stringify(value);
}

// How a block says which of its last line breaks count.
function headOf(text: string): string {
  if (text.endsWith('\n\n')) return '|+';
  return text.endsWith('\n') ? '|' : '|-';
}

function block(text: unknown, indent: string): string | null {
  if (
    typeof text !== 'string' ||
    !text.includes('\n') ||
    /[^\x20-\x7e\n\t\u00a0-\uffff]/.test(text) ||
    /^\s/.test(text)
  )
    return null;
  const lines = text.replace(/\n$/, '').split('\n');
  return `${headOf(text)}\n${lines.map((line) => (line ? indent + line : '')).join('\n')}`;
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

const emptyText = (value: unknown) => (Array.isArray(value) ? '[]' : '{}');

function write(value: unknown, indent: string): string {
  if (Array.isArray(value)) {
    return value
      .map((item) => {
        if (typeof item === 'object' && item !== null && !isEmpty(item)) {
          const inner = write(item, `${indent}  `);
          return `${indent}- ${inner.slice(indent.length + 2)}`;
        }
        return `${indent}- ${isEmpty(item) ? emptyText(item) : (block(item, `${indent}  `) ?? scalar(item))}`;
      })
      .join('\n');
  }
  return Object.entries(value as Record<string, unknown>)
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => {
      const name = `${indent}${scalar(key)}:`;
      if (typeof item === 'object' && item !== null) {
        if (isEmpty(item)) return `${name} ${emptyText(item)}`;
        return `${name}\n${write(item, Array.isArray(item) ? indent : `${indent}  `)}`;
      }
      return `${name} ${block(item, `${indent}  `) ?? scalar(item)}`;
    })
    .join('\n');
}

export function toYaml(value: unknown): string {
  if (typeof value !== 'object' || value === null) return `${scalar(value)}\n`;
  if (isEmpty(value)) return `${emptyText(value)}\n`;
  return `${write(value, '')}\n`;
}
