// Why a workload waits or ran as it did, or why a Cron starts no job: what swell why says.
import { withClocks, withoutCount } from '../lib/format.ts';
import { hrefOf } from '../lib/router.ts';
import type { WhyData } from '../lib/types.ts';
import { labelled, tablesOf, type TextTable } from '../lib/why_lines.ts';
import { Card } from './basic.tsx';
import { ListTable } from './list_table.tsx';

// What swell why prints, without what the page says elsewhere: the sentence above it, and below it the next step and
// what starts the job, which ends the text.
function linesBeside({ lines, sentence, next, start }: WhyData): string[] {
  const first = (line: string) => line === sentence || line === `${sentence}.`;
  const startAt = lines.findIndex(
    (line) => /^It would (?:start|grow), for example, with\b/.test(line) || line === start?.split('\n')[0],
  );
  const before = startAt < 0 ? lines : lines.slice(0, startAt);
  return before.filter((line) => !first(line) && !(next && line.startsWith('Next:')));
}

// "mnist is over: …" and "The job is over: …" tell the same.
function isTold(sentence: string, told = ''): boolean {
  const said = (text: string) => text.replace(/^(?:The job|\S+) /, '').replace(/\.$/, '');
  return said(told) === said(sentence);
}

// "FREE GPUS" is how a terminal writes "Free GPUs".
const headOf = (words: string) =>
  (words.charAt(0) + words.slice(1).toLowerCase()).replaceAll(/\b[gc]pus?\b/g, (unit) =>
    unit.toUpperCase().replace(/S$/, 's'),
  );

function Table({ table: { title, heads, rows } }: { table: TextTable }) {
  return (
    <ListTable label={title} heads={heads.map(headOf)} fills>
      {rows.map((cells) => (
        <tr key={cells[0]}>
          {cells.map((cell, at) => (
            <td key={at} class={at < cells.length - 1 ? 'nowrap' : undefined}>
              {heads[at] === 'NODE' ? <a href={hrefOf.node(cell)}>{cell}</a> : cell}
            </td>
          ))}
        </tr>
      ))}
    </ListTable>
  );
}

function Text({ lines }: { lines: string[] }) {
  if (lines.length === 1) return <p class="muted small">{lines[0]?.trim()}</p>;
  return (
    <pre class="text wraps" tabIndex={0} aria-label="More, as swell why prints it">
      {lines.join('\n')}
    </pre>
  );
}

// `told`: the sentence that the page has already.
export function WhyCard({ why, told }: { why: WhyData; told?: string }) {
  const { facts, rest } = labelled(linesBeside(why));
  const again = isTold(why.sentence, told);
  if (again && facts.length === 0 && rest.length === 0) return null;
  return (
    <Card title="Why">
      <div class="stack" style={{ gap: '12px' }}>
        {!again && <p class="sentence">{withClocks(why.sentence)}</p>}
        {facts.length > 0 && (
          <dl class="lines">
            {facts.map(([label, text], index) => (
              <div key={index}>
                <dt>{label}</dt>
                <dd>{withClocks(withoutCount(text))}</dd>
              </div>
            ))}
          </dl>
        )}
        {tablesOf(rest).map((block, index) =>
          Array.isArray(block) ? <Text key={index} lines={block} /> : <Table key={index} table={block} />,
        )}
      </div>
    </Card>
  );
}
