// A plain table of a few rows. One with a label scrolls sideways where it is too wide.
import type { ComponentChildren } from 'preact';

type Heading = string | { text: string; num?: boolean; width?: string };

// The heading of a column of numbers: amounts, spans, shares. It alone says that the column is aligned to the right.
export const num = (text: string): Heading => ({ text, num: true });

function HeadCell({ heading }: { heading: Heading }) {
  if (typeof heading === 'string') return <th>{heading}</th>;
  return (
    <th class={heading.num ? 'num' : undefined} style={heading.width ? { width: heading.width } : undefined}>
      {heading.text}
    </th>
  );
}

export function ListTable({
  heads,
  label,
  fills,
  children,
}: {
  heads?: Heading[];
  label?: string;
  fills?: boolean; // breaks long words rather than being wider than its place
  children: ComponentChildren;
}) {
  const numbers = (heads ?? []).map((head, at) => (typeof head !== 'string' && head.num ? `num-${at + 1}` : ''));
  const table = (
    <table class={['list-table', ...numbers].filter(Boolean).join(' ')}>
      {heads && (
        <thead>
          <tr>
            {heads.map((heading, at) => (
              <HeadCell key={at} heading={heading} />
            ))}
          </tr>
        </thead>
      )}
      <tbody>{children}</tbody>
    </table>
  );
  if (!label) return table;
  return (
    <div class={`scroll-x${fills ? ' conditions' : ''}`} tabIndex={0} role="region" aria-label={label}>
      {table}
    </div>
  );
}
