// A job that hangs, or did: which ranks do not move, where they are, and what they do.
import { Fragment } from 'preact';
import { dateTime, number, plural, span } from '../lib/format.ts';
import { hrefOf } from '../lib/router.ts';
import type { Hang, HungRank } from '../lib/types.ts';
import { Age, Card } from './basic.tsx';

function Ranks({ ranks, label, opened }: { ranks: HungRank[]; label: string; opened: boolean }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table class="list-table">
        <thead>
          <tr>
            <th class="num">Rank</th>
            <th>Pod</th>
            <th>Node</th>
            <th>Phase</th>
            <th class="num">Step</th>
            <th>Since</th>
            <th class="num">Deadline</th>
          </tr>
        </thead>
        <tbody>
          {ranks.map((rank) => (
            <Fragment key={rank.rank}>
              <tr>
                <td class="num">{rank.rank}</td>
                <td>{rank.pod ?? '–'}</td>
                <td>{rank.node ? <a href={hrefOf.node(rank.node)}>{rank.node}</a> : '–'}</td>
                <td>{rank.phase ?? '–'}</td>
                <td class="num">{number(rank.step)}</td>
                <td>
                  <Age time={rank.since} />
                </td>
                <td class="num">{span(rank.deadlineSeconds)}</td>
              </tr>
              {rank.stack && (
                <tr>
                  <td colSpan={7}>
                    <details open={opened}>
                      <summary class="small">Stack of rank {rank.rank}</summary>
                      <pre class="text" tabIndex={0} aria-label={`Stack of rank ${rank.rank}`}>
                        {rank.stack}
                      </pre>
                    </details>
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function HangCard({ hang }: { hang: Hang }) {
  const suspects = hang.ranks.filter((rank) => rank.suspect);
  const others = hang.ranks.filter((rank) => !rank.suspect);
  return (
    <Card
      title={hang.now ? 'No rank moves' : 'It hung before'}
      right={
        <span class="muted small">
          {hang.restarts > 0 ? `restarted ${plural(hang.restarts, 'time')} without progress` : ''}
        </span>
      }
    >
      <div class="stack" style={{ gap: '8px' }}>
        <p>
          {hang.now ? `Since ${dateTime(hang.since)} no rank has made progress.` : hang.message}
          {suspects.length > 0 && ` ${plural(suspects.length, 'suspect')}, for which the others may wait:`}
        </p>
        {suspects.length > 0 && <Ranks ranks={suspects} label="Suspects" opened />}
        {others.length > 0 && (
          <details open={suspects.length === 0}>
            <summary>
              {plural(others.length, 'rank')}{' '}
              {others.length === 1 ? 'that waits, with its stack' : 'that wait, with their stacks'}
            </summary>
            <Ranks ranks={others} label="Ranks that wait" opened={false} />
          </details>
        )}
      </div>
    </Card>
  );
}
