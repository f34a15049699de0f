// Why a workload waits or ran as it did, or why a Cron starts no job: what swell why says.
import { labelled } from '../lib/why_lines.ts';
import type { WhyData } from '../lib/types.ts';
import { Card } from './basic.tsx';

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

// `told`: the sentence that the page has already.
export function WhyCard({ why, told }: { why: WhyData; told?: string }) {
  const { facts, rest } = labelled(linesBeside(why));
  const again = isTold(why.sentence, told);
  if (again && facts.length === 0 && rest.length === 0) return null;
  return (
    <Card title="Why">
      <div class="stack" style={{ gap: '12px' }}>
        {!again && <p class="sentence">{why.sentence}</p>}
        {facts.length > 0 && (
          <dl class="lines">
            {facts.map(([label, text], index) => (
              <div key={index}>
                <dt>{label}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
        )}
        {rest.length > 0 && (
          <pre class="text wraps" tabIndex={0} aria-label="More, as swell why prints it">
            {rest.join('\n')}
          </pre>
        )}
      </div>
    </Card>
  );
}
