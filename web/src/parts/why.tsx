// Why a workload waits or ran as it did, or why a Cron starts no job: what swell why says.
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

export function WhyCard({ why }: { why: WhyData }) {
  const lines = linesBeside(why);
  return (
    <Card title="Why">
      <p class="sentence">{why.sentence}</p>
      {lines.length > 0 && (
        <pre class="text wraps" tabIndex={0} aria-label="More, as swell why prints it" style={{ marginTop: '12px' }}>
          {lines.join('\n')}
        </pre>
      )}
    </Card>
  );
}
